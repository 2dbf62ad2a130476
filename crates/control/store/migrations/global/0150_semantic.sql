-- The semantic layer: what things are, whatever a cloud calls them. The same for every tenant; the operator edits it.

-- Whether the operator acts.
CREATE FUNCTION is_operator() RETURNS boolean
LANGUAGE sql STABLE SET search_path = nimbus_core, pg_temp
AS $$ SELECT EXISTS (SELECT FROM tenants WHERE id = current_tenant() AND parent_id IS NULL) $$;
REVOKE ALL ON FUNCTION is_operator() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION is_operator() TO {{app}}, {{readonly}};

CREATE TABLE semantic_providers (
    name text PRIMARY KEY CHECK (name ~ '^[a-z][a-z0-9]{1,31}$'),
    display_name text NOT NULL CHECK (display_name <> '' AND length(display_name) <= 200),
    updated_at timestamptz NOT NULL DEFAULT now(),
    updated_by uuid
);

CREATE TABLE semantic_resource_types (
    name text PRIMARY KEY CHECK (name ~ '^[A-Z][A-Za-z0-9]{1,63}$'),
    -- Other names for the same: those of document 002, and what else people say.
    aliases text[] NOT NULL DEFAULT '{}',
    category text NOT NULL CHECK (category ~ '^[a-z]{1,32}$'),
    description text NOT NULL DEFAULT '' CHECK (length(description) <= 500),
    updated_at timestamptz NOT NULL DEFAULT now(),
    updated_by uuid
);

-- What a type is in a cloud.
CREATE TABLE semantic_provider_resource_types (
    provider text NOT NULL REFERENCES semantic_providers (name),
    resource_type text NOT NULL REFERENCES semantic_resource_types (name),
    -- As the cloud calls it; none where it has nothing of the kind.
    names text[] NOT NULL DEFAULT '{}',
    -- Types of Pulumi resources that are one, such as aws:ec2/vpc:Vpc.
    resources text[] NOT NULL DEFAULT '{}',
    note text NOT NULL DEFAULT '' CHECK (length(note) <= 500),
    updated_at timestamptz NOT NULL DEFAULT now(),
    updated_by uuid,
    PRIMARY KEY (provider, resource_type)
);
CREATE INDEX semantic_resources ON semantic_provider_resource_types USING gin (resources);

DO $$ DECLARE target text; BEGIN
    FOREACH target IN ARRAY ARRAY['semantic_providers', 'semantic_resource_types', 'semantic_provider_resource_types']
    LOOP
        PERFORM protect_installation_table(target::regclass);
        EXECUTE format('CREATE POLICY reading ON %I FOR SELECT TO {{app}}, {{readonly}} USING (true)', target);
        EXECUTE format('CREATE POLICY editing ON %I TO {{app}} USING (is_operator()) WITH CHECK (is_operator())', target);
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %I TO {{app}}', target);
        EXECUTE format('GRANT SELECT ON %I TO {{readonly}}', target);
    END LOOP;
END $$;

INSERT INTO semantic_providers (name, display_name) VALUES
    ('proxmox', 'Proxmox VE'), ('aws', 'Amazon Web Services'), ('azure', 'Microsoft Azure'),
    ('gcp', 'Google Cloud'), ('oci', 'Oracle Cloud Infrastructure'), ('kubernetes', 'Kubernetes');

INSERT INTO semantic_resource_types (name, aliases, category, description) VALUES
    ('Tenancy', '{}', 'organisation', 'what a customer has in a cloud as a whole'),
    ('Compartment', '{}', 'organisation', 'a part of it that belongs together'),
    ('VirtualNetwork', '{Network}', 'network', 'a network of its own'),
    ('Subnet', '{}', 'network', 'a range of addresses of a network'),
    ('FirewallRule', '{SecurityGroup,"Security Group"}', 'network', 'what may talk to what'),
    ('LoadBalancer', '{"Load Balancer"}', 'network', 'spreads requests over several machines'),
    ('DnsZone', '{}', 'network', 'names of a domain'),
    ('ApiGateway', '{}', 'network', 'takes requests of an interface'),
    ('VirtualMachine', '{Compute}', 'compute', 'a machine with disks and addresses'),
    ('Container', '{}', 'compute', 'a process with a file system of its own'),
    ('ServerlessFunction', '{}', 'compute', 'code that runs when it is asked'),
    ('KubernetesCluster', '{}', 'compute', 'a cluster that runs containers'),
    ('ContainerRegistry', '{}', 'storage', 'images of containers'),
    ('BlockStorage', '{Storage}', 'storage', 'a disk'),
    ('ObjectStorage', '{}', 'storage', 'files by name'),
    ('Database', '{}', 'data', 'a database that somebody else runs'),
    ('SecretStore', '{}', 'security', 'secrets and keys'),
    ('IdentityProvider', '{}', 'security', 'who people are'),
    ('SecurityBaseline', '{}', 'security', 'what an account is watched and held to'),
    ('Monitoring', '{}', 'operations', 'figures, logs and alarms');

-- Names by document 002, with the column of Google Cloud that it lacks; no names where a cloud has nothing of the kind.
INSERT INTO semantic_provider_resource_types (resource_type, provider, names, resources, note) VALUES
    ('Tenancy', 'proxmox', '{Datacenter,Cluster}', '{}', ''),
    ('Tenancy', 'aws', '{Account}', '{aws:organizations/account:Account}', ''),
    ('Tenancy', 'azure', '{Subscription}', '{azure-native:subscription:Subscription}', ''),
    ('Tenancy', 'gcp', '{Project}', '{gcp:organizations/project:Project}', ''),
    ('Tenancy', 'oci', '{Tenancy}', '{}', ''),
    ('Tenancy', 'kubernetes', '{Cluster}', '{}', ''),
    ('Compartment', 'proxmox', '{Pool}', '{proxmoxve:Permission/pool:Pool}', ''),
    ('Compartment', 'aws', '{Tags,OUs}', '{aws:organizations/organizationalUnit:OrganizationalUnit}', ''),
    ('Compartment', 'azure', '{"Resource Group"}', '{azure-native:resources:ResourceGroup}', ''),
    ('Compartment', 'gcp', '{Folder}', '{gcp:organizations/folder:Folder}', ''),
    ('Compartment', 'oci', '{Compartment}', '{oci:Identity/compartment:Compartment}', ''),
    ('Compartment', 'kubernetes', '{Namespace}', '{kubernetes:core/v1:Namespace}', ''),
    ('VirtualNetwork', 'proxmox', '{Bridge,"SDN VNet"}', '{proxmoxve:Network/networkBridge:NetworkBridge,proxmoxve:Sdn/vnet:Vnet}', ''),
    ('VirtualNetwork', 'aws', '{VPC}', '{aws:ec2/vpc:Vpc}', ''),
    ('VirtualNetwork', 'azure', '{VNet}', '{azure-native:network:VirtualNetwork}', ''),
    ('VirtualNetwork', 'gcp', '{"VPC network"}', '{gcp:compute/network:Network}', ''),
    ('VirtualNetwork', 'oci', '{VCN}', '{oci:Core/vcn:Vcn}', ''),
    ('Subnet', 'proxmox', '{"SDN Subnet"}', '{proxmoxve:Sdn/subnet:Subnet}', ''),
    ('Subnet', 'aws', '{Subnet}', '{aws:ec2/subnet:Subnet}', ''),
    ('Subnet', 'azure', '{Subnet}', '{azure-native:network:Subnet}', ''),
    ('Subnet', 'gcp', '{Subnetwork}', '{gcp:compute/subnetwork:Subnetwork}', ''),
    ('Subnet', 'oci', '{Subnet}', '{oci:Core/subnet:Subnet}', ''),
    ('FirewallRule', 'proxmox', '{"Firewall rules"}', '{proxmoxve:Network/firewallRules:FirewallRules}', ''),
    ('FirewallRule', 'aws', '{SG}', '{aws:ec2/securityGroup:SecurityGroup,aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule}', ''),
    ('FirewallRule', 'azure', '{NSG}', '{azure-native:network:NetworkSecurityGroup}', ''),
    ('FirewallRule', 'gcp', '{"VPC firewall rule"}', '{gcp:compute/firewall:Firewall}', ''),
    ('FirewallRule', 'oci', '{NSL}', '{oci:Core/networkSecurityGroup:NetworkSecurityGroup,oci:Core/securityList:SecurityList}', ''),
    ('FirewallRule', 'kubernetes', '{NetworkPolicy}', '{kubernetes:networking.k8s.io/v1:NetworkPolicy}', ''),
    ('LoadBalancer', 'proxmox', '{}', '{}', 'hosted on a virtual machine'),
    ('LoadBalancer', 'aws', '{ALB,NLB}', '{aws:lb/loadBalancer:LoadBalancer}', ''),
    ('LoadBalancer', 'azure', '{LB}', '{azure-native:network:LoadBalancer}', ''),
    ('LoadBalancer', 'gcp', '{"Cloud Load Balancing"}', '{gcp:compute/forwardingRule:ForwardingRule}', ''),
    ('LoadBalancer', 'oci', '{LB}', '{oci:LoadBalancer/loadBalancer:LoadBalancer}', ''),
    ('LoadBalancer', 'kubernetes', '{Ingress}', '{kubernetes:networking.k8s.io/v1:Ingress}', ''),
    ('VirtualMachine', 'proxmox', '{"QEMU VM",LXC}', '{proxmoxve:VM/virtualMachine:VirtualMachine}', ''),
    ('VirtualMachine', 'aws', '{EC2}', '{aws:ec2/instance:Instance,aws:ec2/launchTemplate:LaunchTemplate}', ''),
    ('VirtualMachine', 'azure', '{VM}', '{azure-native:compute:VirtualMachine}', ''),
    ('VirtualMachine', 'gcp', '{"Compute Engine instance"}', '{gcp:compute/instance:Instance}', ''),
    ('VirtualMachine', 'oci', '{Instance}', '{oci:Core/instance:Instance}', ''),
    ('Container', 'proxmox', '{LXC}', '{proxmoxve:CT/container:Container}', ''),
    ('Container', 'aws', '{"ECS task"}', '{aws:ecs/service:Service,aws:ecs/taskDefinition:TaskDefinition}', ''),
    ('Container', 'azure', '{"Container Instance"}', '{azure-native:containerinstance:ContainerGroup}', ''),
    ('Container', 'gcp', '{"Cloud Run service"}', '{gcp:cloudrunv2/service:Service}', ''),
    ('Container', 'oci', '{"Container Instance"}', '{oci:ContainerEngine/containerInstance:ContainerInstance}', ''),
    ('Container', 'kubernetes', '{Pod,Deployment}', '{kubernetes:core/v1:Pod,kubernetes:apps/v1:Deployment}', ''),
    ('BlockStorage', 'proxmox', '{ZFS,Ceph,LVM}', '{proxmoxve:Storage/file:File}', ''),
    ('BlockStorage', 'aws', '{EBS}', '{aws:ebs/volume:Volume}', ''),
    ('BlockStorage', 'azure', '{Disk}', '{azure-native:compute:Disk}', ''),
    ('BlockStorage', 'gcp', '{"Persistent Disk"}', '{gcp:compute/disk:Disk}', ''),
    ('BlockStorage', 'oci', '{"Block Volume"}', '{oci:Core/volume:Volume}', ''),
    ('BlockStorage', 'kubernetes', '{PersistentVolumeClaim}', '{kubernetes:core/v1:PersistentVolumeClaim}', ''),
    ('ObjectStorage', 'aws', '{S3}', '{aws:s3/bucket:Bucket,aws:s3/bucketV2:BucketV2}', ''),
    ('ObjectStorage', 'azure', '{Blob}', '{azure-native:storage:BlobContainer}', ''),
    ('ObjectStorage', 'gcp', '{"Cloud Storage"}', '{gcp:storage/bucket:Bucket}', ''),
    ('ObjectStorage', 'oci', '{Object}', '{oci:ObjectStorage/bucket:Bucket}', ''),
    ('Database', 'proxmox', '{}', '{}', 'hosted on a virtual machine'),
    ('Database', 'aws', '{RDS}', '{aws:rds/instance:Instance,aws:rds/cluster:Cluster}', ''),
    ('Database', 'azure', '{"SQL Database"}', '{azure-native:sql:Database}', ''),
    ('Database', 'gcp', '{"Cloud SQL"}', '{gcp:sql/databaseInstance:DatabaseInstance}', ''),
    ('Database', 'oci', '{ATP}', '{oci:Database/autonomousDatabase:AutonomousDatabase}', ''),
    ('KubernetesCluster', 'aws', '{EKS}', '{aws:eks/cluster:Cluster}', ''),
    ('KubernetesCluster', 'azure', '{AKS}', '{azure-native:containerservice:ManagedCluster}', ''),
    ('KubernetesCluster', 'gcp', '{GKE}', '{gcp:container/cluster:Cluster}', ''),
    ('KubernetesCluster', 'oci', '{OKE}', '{oci:ContainerEngine/cluster:Cluster}', ''),
    ('ContainerRegistry', 'aws', '{ECR}', '{aws:ecr/repository:Repository}', ''),
    ('ContainerRegistry', 'azure', '{ACR}', '{azure-native:containerregistry:Registry}', ''),
    ('ContainerRegistry', 'gcp', '{"Artifact Registry"}', '{gcp:artifactregistry/repository:Repository}', ''),
    ('ContainerRegistry', 'oci', '{OCIR}', '{oci:Artifacts/containerRepository:ContainerRepository}', ''),
    ('ServerlessFunction', 'aws', '{Lambda}', '{aws:lambda/function:Function}', ''),
    ('ServerlessFunction', 'azure', '{"Function App"}', '{azure-native:web:WebApp}', ''),
    ('ServerlessFunction', 'gcp', '{"Cloud Run function"}', '{gcp:cloudfunctionsv2/function:Function}', ''),
    ('ServerlessFunction', 'oci', '{Function}', '{oci:Functions/function:Function}', ''),
    ('DnsZone', 'aws', '{"Route 53 zone"}', '{aws:route53/zone:Zone}', ''),
    ('DnsZone', 'azure', '{"DNS zone"}', '{azure-native:network:Zone,azure-native:dns:Zone}', ''),
    ('DnsZone', 'gcp', '{"Cloud DNS zone"}', '{gcp:dns/managedZone:ManagedZone}', ''),
    ('DnsZone', 'oci', '{Zone}', '{oci:Dns/zone:Zone}', ''),
    ('ApiGateway', 'aws', '{"API Gateway"}', '{aws:apigateway/restApi:RestApi,aws:apigatewayv2/api:Api}', ''),
    ('ApiGateway', 'azure', '{"API Management"}', '{azure-native:apimanagement:ApiManagementService}', ''),
    ('ApiGateway', 'gcp', '{"API Gateway"}', '{gcp:apigateway/api:Api}', ''),
    ('ApiGateway', 'oci', '{"API Gateway"}', '{oci:ApiGateway/gateway:Gateway}', ''),
    ('SecretStore', 'aws', '{"Secrets Manager",KMS}', '{aws:secretsmanager/secret:Secret,aws:kms/key:Key}', ''),
    ('SecretStore', 'azure', '{"Key Vault"}', '{azure-native:keyvault:Vault}', ''),
    ('SecretStore', 'gcp', '{"Secret Manager"}', '{gcp:secretmanager/secret:Secret}', ''),
    ('SecretStore', 'oci', '{Vault}', '{oci:Kms/vault:Vault}', ''),
    ('SecretStore', 'kubernetes', '{Secret}', '{kubernetes:core/v1:Secret}', ''),
    ('IdentityProvider', 'aws', '{Cognito}', '{aws:cognito/userPool:UserPool}', ''),
    ('IdentityProvider', 'azure', '{"Entra ID"}', '{azuread:index/application:Application}', ''),
    ('IdentityProvider', 'gcp', '{"Identity Platform"}', '{gcp:identityplatform/tenant:Tenant}', ''),
    ('IdentityProvider', 'oci', '{"Identity domain"}', '{oci:Identity/domain:Domain}', ''),
    ('SecurityBaseline', 'aws', '{GuardDuty,CloudTrail,Config}', '{aws:guardduty/detector:Detector,aws:cloudtrail/trail:Trail}', ''),
    ('Monitoring', 'aws', '{CloudWatch}', '{aws:cloudwatch/dashboard:Dashboard,aws:cloudwatch/metricAlarm:MetricAlarm}', ''),
    ('Monitoring', 'azure', '{Monitor}', '{azure-native:insights:MetricAlert}', ''),
    ('Monitoring', 'gcp', '{"Cloud Monitoring"}', '{gcp:monitoring/dashboard:Dashboard,gcp:monitoring/alertPolicy:AlertPolicy}', ''),
    ('Monitoring', 'oci', '{Monitoring}', '{oci:Monitoring/alarm:Alarm}', '');
