// Package portfolio is the policy that treats the nodes of a pool as a portfolio
// of markets: it holds those that cost least once what their loss would cost is
// counted in, spreads them so that no single loss does harm, and moves pods only
// where the saving pays for the move.
package portfolio
