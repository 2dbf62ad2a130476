/** How an instance starts: no key pair, no public address, IMDSv2 only, an encrypted disk. */
import { at, remembered } from "@cloud/shared";
import * as aws from "@pulumi/aws";
import * as pulumi from "@pulumi/pulumi";
import type { InstancesConfig } from "./config";

const AMAZON_LINUX = "/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-x86_64";

export function createLaunchTemplate(config: InstancesConfig): aws.ec2.LaunchTemplate {
  const { context } = config;
  const imageId: pulumi.Input<string> =
    config.amiId === ""
      ? // What is newest changes every few days; instances are renewed when somebody says so.
        remembered(
          context,
          "image",
          config.imageRelease,
          aws.ssm.getParameterOutput({ name: AMAZON_LINUX }).value,
        )
      : config.amiId;
  return new aws.ec2.LaunchTemplate(context.logical("launch-template"), {
    namePrefix: `${context.physical(100, "web")}-`,
    imageId,
    instanceType: at(config.instanceTypes, 0),
    updateDefaultVersion: true,
    iamInstanceProfile: { name: config.instanceProfileName },
    metadataOptions: {
      httpEndpoint: "enabled",
      httpTokens: "required",
      httpPutResponseHopLimit: 1,
      instanceMetadataTags: "enabled",
    },
    monitoring: { enabled: config.detailedMonitoring },
    networkInterfaces: [
      { associatePublicIpAddress: "false", securityGroups: [config.ec2SecurityGroupId] },
    ],
    blockDeviceMappings: [
      {
        deviceName: "/dev/xvda",
        ebs: {
          volumeType: "gp3",
          volumeSize: config.volumeSizeGb,
          encrypted: "true",
          kmsKeyId: config.dataKeyArn,
          deleteOnTermination: "true",
        },
      },
    ],
    userData: Buffer.from(startScript(config.appPort)).toString("base64"),
    tagSpecifications: ["instance", "volume"].map((resourceType) => ({
      resourceType,
      tags: context.tags("web"),
    })),
    tags: context.tags("launch-template"),
  });
}

/**
 * A page that answers until there is an application: from Python, which the image has, so that
 * nothing is installed from the internet when an instance starts.
 */
function startScript(port: number): string {
  return `#!/bin/bash
set -euo pipefail
mkdir -p /srv/placeholder
echo 'ready' > /srv/placeholder/index.html
cat > /etc/systemd/system/placeholder.service <<'UNIT'
[Unit]
Description=Page that answers until there is an application
[Service]
DynamicUser=yes
AmbientCapabilities=CAP_NET_BIND_SERVICE
WorkingDirectory=/srv/placeholder
ExecStart=/usr/bin/python3 -m http.server ${port}
Restart=always
[Install]
WantedBy=multi-user.target
UNIT
systemctl enable --now placeholder.service
`;
}
