// Package report writes a comparison as one HTML file that needs nothing else:
// no network, no other file, and scripts only for comfort. Its pictures are SVG
// of package chart in the colours of the page, which follow the reader's choice
// of light or dark.
//
// Equal comparisons give equal bytes: no clock is read. Whatever comes from
// outside, as names of scenarios and parameters of policies, is escaped as it is
// added.
package report
