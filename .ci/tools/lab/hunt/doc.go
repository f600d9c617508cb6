// Package hunt looks for the demand, prices and shortages under which a policy does worst against
// the best simple rule. It searches a small vector of numbers with recorded bounds, makes what it
// finds smaller, and writes it as an ordinary scenario.
package hunt
