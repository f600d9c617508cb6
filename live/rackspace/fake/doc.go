// Package fake imitates Rackspace Spot over HTTP for tests: its login, its API of
// organisations, cloudspaces, server classes and node pools, its price feed, and the
// auction behind them, which follows a script of prices. Machines join a cluster as Node
// objects some minutes after they were won.
package fake
