// Package report writes a comparison as one self-contained HTML file: it needs no network and no
// other file, and only optional features require scripts. Its pictures are SVGs from package chart
// with the colours of the page, which follow the reader's choice of light or dark.
//
// The output is deterministic and contains no current time. All external text, such as names of
// scenarios and parameters of policies, is escaped when it is added.
package report
