// Package gcp reads the prices of Google Cloud's machine types for the market book: a [Reader]
// reads Google's price list through the Cloud Billing Catalog API, which needs an API key, and a
// [Feed] reports what follows from it.
//
// # What the API returns
//
// Google sells cores, memory and accelerators of a machine apart. A SKU of the API is one of them:
// a description, the regions in which it is sold, whether it is sold on demand or as Spot
// ("Preemptible"), and a price per hour of one core, one GiB or one accelerator (Google Cloud
// documentation, "Get public Google Cloud pricing",
// https://cloud.google.com/billing/v1/how-tos/catalog-api). The price of a machine is the sum of its
// parts (Compute Engine documentation, "VM instance pricing").
//
// Only the description states which machine family a SKU belongs to. A family is priced here if its
// descriptions are known from two independent mappings that agree
// (Cyclenerd/google-cloud-pricing-cost-calculator, build/mapping.csv, and
// cloudpilot-ai/karpenter-provider-gcp, pkg/providers/pricing/instanceprice/families.go). Machine
// types with a part that the catalog of Spotter does not describe, such as local disks, have no
// price.
//
// # Regions and zones
//
// Google prices machines by region. The feed reports the price of a region for each of its zones.
// The API does not list the zones that have a machine type: a zone without it refuses the launch,
// which the book counts.
package gcp
