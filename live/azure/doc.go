// Package azure reads the prices of Azure's virtual machines for the market book: a [Reader] asks
// the Azure Retail Prices API, which is public and needs no credentials, and a [Feed] reports what
// it returns.
//
// # What the API returns
//
// A row of the API is a meter: a product, a SKU and a price per hour since a date (Azure
// documentation, "Azure Retail Prices overview",
// https://learn.microsoft.com/rest/api/cost-management/retail-prices/azure-retail-prices). A Spot
// price is the row whose SKU ends in " Spot". Rows for Windows, for Low Priority machines of Azure
// Batch, for Cloud Services and for dedicated hosts have the same size name and other prices; they
// are left out. Karpenter's provider for Azure reads the same rows
// (Azure/karpenter-provider-azure, pkg/providers/pricing/pricing.go).
//
// # Regions and zones
//
// Azure prices Spot machines by region. The feed reports the price of a region for each of its
// zones, which nodes name as AKS labels them, such as westeurope-1. The API does not list the zones
// that have a size: a zone without it refuses the launch, which the book counts.
package azure
