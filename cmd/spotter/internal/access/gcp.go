package access

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/live/gcp"
)

// gcpVariable names the environment variable with the address of a price list in the form of the
// Cloud Billing Catalog API, and gcpKeyVariable that with an API key.
const (
	gcpVariable    = "SPOTTER_GCP_PRICES_URL"
	gcpKeyVariable = "SPOTTER_GCP_API_KEY"
)

// GCPWait is the timeout for the prices that a command reads from Google Cloud, whose list has about
// ten large pages.
const GCPWait = time.Minute

// errNoGCPKey is returned if no API key of Google Cloud is given.
var errNoGCPKey = errors.New("Google's price list needs an API key: set " + gcpKeyVariable)

// GCPPrices returns the configuration with which the prices of regions of Google Cloud are read. The
// API key is the content of keyFile, or the value of an environment variable if keyFile is empty.
func GCPPrices(keyFile string, regions ...string) gcp.Config {
	c := gcp.DefaultConfig()
	c.Regions = regions
	c.Endpoint = cmp.Or(os.Getenv(gcpVariable), c.Endpoint)
	c.Key = func() (string, error) {
		key := os.Getenv(gcpKeyVariable)
		if keyFile != "" {
			data, err := os.ReadFile(keyFile)
			if err != nil {
				return "", err
			}
			if key = string(data); strings.TrimSpace(key) == "" {
				return "", fmt.Errorf("%s is empty", keyFile)
			}
		}
		if key = strings.TrimSpace(key); key == "" {
			return "", errNoGCPKey
		}
		return key, nil
	}
	return c
}

// NewGCPReader returns a reader for a command that a person waits for: a request that fails is
// repeated once.
func NewGCPReader() (*gcp.Reader, error) {
	c := GCPPrices("")
	c.Attempts = 2
	return gcp.NewReader(c)
}

// GCPRefusal describes why Google returned no prices within [GCPWait].
func GCPRefusal(err error) string {
	switch {
	case errors.Is(err, errNoGCPKey):
		return errNoGCPKey.Error()
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("Google did not give them within %v", GCPWait)
	}
	return "Google's price list cannot be read: " + cli.FirstLine(err)
}
