// A cluster of AKS with node auto-provisioning, a registry for Spotter's image, and the identity by
// which deploy.yml installs it. The page is docs/deployment.md.
//
//   az deployment group create --resource-group GROUP --name spotter \
//     --template-file main.bicep --parameters main.bicepparam
//
// Properties are those of the API versions named below:
// https://github.com/Azure/bicep-types-az/tree/main/generated

@description('Prefix of the names of what is made.')
@minLength(3)
@maxLength(20)
param name string = 'spotter'

@description('Region of everything.')
param location string = resourceGroup().location

@description('Size of the nodes that node auto-provisioning does not make: those of the system pool.')
param systemVMSize string = 'Standard_D4s_v5'

@description('Nodes of the system pool. Spotter has two replicas, which should not share one.')
@minValue(2)
@maxValue(10)
param systemNodes int = 2

@description('Zones of the system pool; empty in a region without zones.')
param zones array = ['1', '2', '3']

@description('Repository of GitHub whose workflow installs, as OWNER/NAME.')
param repository string

@description('Environment of that repository in which the workflow must run, so that its rules hold.')
param environment string = 'aks'

// Built-in roles: https://learn.microsoft.com/azure/role-based-access-control/built-in-roles
var roleReader = 'acdd72a7-3385-48ef-bd42-f606fba81ae7'
var roleAcrPull = '7f951dda-4ed3-4680-a7ca-43fe172d538d'
var roleAcrPush = '8311e382-0749-4cb8-b61a-304f252e45ec'
var roleClusterUser = '4abbcc35-e782-43d8-92c5-2d3f1bd2253f'
// The chart creates ClusterRoles, and Kubernetes lets an identity grant only rights that it has.
var roleClusterAdmin = 'b1ff04bb-8a4e-4dc4-8eb5-8693973ce19b'

// A registry has a name of its own in all of Azure, of letters and digits.
var compact = replace(name, '-', '')

resource registry 'Microsoft.ContainerRegistry/registries@2023-07-01' = {
  name: take('${compact}${uniqueString(resourceGroup().id)}', 50)
  location: location
  sku: { name: 'Basic' }
  properties: { adminUserEnabled: false }
}

resource cluster 'Microsoft.ContainerService/managedClusters@2025-05-01' = {
  name: name
  location: location
  sku: { name: 'Base', tier: 'Standard' }
  identity: { type: 'SystemAssigned' }
  properties: {
    dnsPrefix: name
    enableRBAC: true
    disableLocalAccounts: true
    aadProfile: { managed: true, enableAzureRBAC: true }
    oidcIssuerProfile: { enabled: true }
    securityProfile: { workloadIdentity: { enabled: true } }
    // Karpenter, run by AKS: https://learn.microsoft.com/azure/aks/node-auto-provisioning
    nodeProvisioningProfile: { mode: 'Auto', defaultNodePools: 'Auto' }
    networkProfile: {
      networkPlugin: 'azure'
      networkPluginMode: 'overlay'
      networkDataplane: 'cilium'
      networkPolicy: 'cilium'
      loadBalancerSku: 'standard'
    }
    agentPoolProfiles: [
      {
        name: 'system'
        mode: 'System'
        osType: 'Linux'
        type: 'VirtualMachineScaleSets'
        vmSize: systemVMSize
        count: systemNodes
        availabilityZones: zones
      }
    ]
  }
}

// The workflow proves who it is by a token of GitHub; there is no secret. Spotter itself needs no
// identity at Azure: docs/rights.md names all that it may do, and all of it is in the cluster.
resource deployer 'Microsoft.ManagedIdentity/userAssignedIdentities@2023-01-31' = {
  name: '${name}-deployer'
  location: location
}

resource federated 'Microsoft.ManagedIdentity/userAssignedIdentities/federatedIdentityCredentials@2023-01-31' = {
  parent: deployer
  name: 'github'
  properties: {
    issuer: 'https://token.actions.githubusercontent.com'
    subject: 'repo:${repository}:environment:${environment}'
    audiences: ['api://AzureADTokenExchange']
  }
}

resource pull 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  name: guid(registry.id, cluster.id, roleAcrPull)
  scope: registry
  properties: {
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', roleAcrPull)
    principalId: cluster.properties.identityProfile.kubeletidentity.objectId
    principalType: 'ServicePrincipal'
  }
}

resource push 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  name: guid(registry.id, deployer.id, roleAcrPush)
  scope: registry
  properties: {
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', roleAcrPush)
    principalId: deployer.properties.principalId
    principalType: 'ServicePrincipal'
  }
}

// The outputs below are read by the workflow.
resource read 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  name: guid(resourceGroup().id, deployer.id, roleReader)
  properties: {
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', roleReader)
    principalId: deployer.properties.principalId
    principalType: 'ServicePrincipal'
  }
}

resource install 'Microsoft.Authorization/roleAssignments@2022-04-01' = [for role in [roleClusterUser, roleClusterAdmin]: {
  name: guid(cluster.id, deployer.id, role)
  scope: cluster
  properties: {
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', role)
    principalId: deployer.properties.principalId
    principalType: 'ServicePrincipal'
  }
}]

@description('Name of the cluster.')
output clusterName string = cluster.name

@description('Name of the registry, and the server that images are pulled from.')
output registryName string = registry.name
output registryServer string = registry.properties.loginServer

@description('What the variables AZURE_CLIENT_ID and AZURE_TENANT_ID of the repository are set to.')
output clientId string = deployer.properties.clientId
output tenantId string = deployer.properties.tenantId
