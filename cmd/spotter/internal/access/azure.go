package access

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/live/azure"
)

// azureVariable names the environment variable with the address of a price API in the form of
// Azure's: that of a national cloud, or a mirror.
const azureVariable = "SPOTTER_AZURE_PRICES_URL"

// AzureWait is the timeout for the prices that a command reads from Azure.
const AzureWait = 15 * time.Second

// AzurePrices returns the configuration with which the prices of regions of Azure are read.
func AzurePrices(regions ...string) azure.Config {
	c := azure.DefaultConfig()
	c.Regions = regions
	c.Endpoint = cmp.Or(os.Getenv(azureVariable), c.Endpoint)
	return c
}

// NewAzureReader returns a reader for a command that a person waits for: a request that fails is
// repeated once.
func NewAzureReader() (*azure.Reader, error) {
	c := AzurePrices()
	c.Attempts = 2
	return azure.NewReader(c)
}

// AzureRefusal describes why Azure returned no prices within [AzureWait].
func AzureRefusal(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Sprintf("Azure did not give them within %v", AzureWait)
	}
	return "Azure's price list cannot be read: " + cli.FirstLine(err)
}
