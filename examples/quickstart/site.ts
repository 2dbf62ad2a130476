import * as pulumi from "@pulumi/pulumi";

import { Page } from "./page";

export interface SiteArgs {
    folder: string;
    title: string;
    topics: string[];
}

/** A front page that links to a page per topic. */
export class Site extends pulumi.ComponentResource {
    /** Where the front page is. */
    readonly front: pulumi.Output<string>;
    /** How many pages there are. */
    readonly pages: pulumi.Output<number>;

    constructor(name: string, args: SiteArgs, options?: pulumi.ComponentResourceOptions) {
        super("quickstart:index:Site", name, {}, options);

        const topics = args.topics.map(
            (topic) =>
                new Page(
                    topic,
                    {
                        path: `${args.folder}/${topic}.html`,
                        content: `<h1>${topic}</h1>\n<p>A page of ${args.title}.</p>\n`,
                    },
                    { parent: this },
                ),
        );

        // The links come from the pages themselves, so the front page is made after them.
        const links = pulumi
            .all(topics.map((page) => page.path))
            .apply((paths) => paths.map((path) => `<li>${path}</li>`).join("\n"));
        const front = new Page(
            "front",
            {
                path: `${args.folder}/index.html`,
                content: pulumi.interpolate`<h1>${args.title}</h1>\n<ul>\n${links}\n</ul>\n`,
            },
            { parent: this },
        );

        this.front = front.path;
        this.pages = pulumi.output(topics.length + 1);
        this.registerOutputs({ front: this.front, pages: this.pages });
    }
}
