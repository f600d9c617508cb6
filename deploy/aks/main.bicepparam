using './main.bicep'

param name = 'spotter'
param repository = 'OWNER/NAME'
param environment = 'aks'
