// Files, texts and archives of all kinds.
import * as pulumi from "@pulumi/pulumi";
import { Blind, Thing } from "./parity";

const { AssetArchive, FileArchive, FileAsset, StringAsset } = pulumi.asset;

new Thing("text", { source: new StringAsset("some text") });
new Thing("file", { source: new FileAsset("./data/file.txt") });
new Thing("folder", { source: new FileArchive("./data") });
new Blind("made", {
    source: new AssetArchive({ "a.txt": new StringAsset("a"), "sub/b.txt": new FileAsset("data/file.txt"), more: new FileArchive("data/more") }),
});
new Thing("quiet", { source: pulumi.secret(new StringAsset("hidden")) });
