package format

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/policy/figures"
)

// The size of the plot of a sweep, in characters.
const (
	frontierWidth  = 60
	frontierHeight = 12
)

// Mark returns the mark of point i of a sweep in plot and table; −1 is the unchanged scenario.
func Mark(i int) string {
	const marks = "123456789abcdefghijklmnopqrstuvwxyz"
	switch {
	case i < 0:
		return "○"
	case i < len(marks):
		return marks[i : i+1]
	}
	return "•"
}

// frontier draws the savings of each value of a sweep over the evictions that it causes.
func frontier(r *eval.WhatIf) string {
	points, places := r.Tradeoffs()
	return Frontier(points, func(i int) string { return Mark(places[i]) }, "$ saved a month", "evictions per pod-day",
		figures.Dollars)
}

// Frontier draws points with their marks in a frame of characters. gain and price are the labels of
// the axes, and words formats a gain. Of several points at the same place, the first is visible.
func Frontier(points []eval.Tradeoff, mark func(i int) string, gain, price string, words func(float64) string) string {
	var b strings.Builder
	if len(points) == 0 {
		return ""
	}
	low, high := points[0], points[0]
	for _, p := range points {
		low = eval.Tradeoff{Gain: min(low.Gain, p.Gain), Price: min(low.Price, p.Price)}
		high = eval.Tradeoff{Gain: max(high.Gain, p.Gain), Price: max(high.Price, p.Price)}
	}
	grid := make([][]string, frontierHeight)
	for y := range grid {
		grid[y] = strings.Split(strings.Repeat(" ", frontierWidth), "")
	}
	for i := len(points) - 1; i >= 0; i-- {
		x := scaled(points[i].Price, low.Price, high.Price, frontierWidth)
		y := scaled(points[i].Gain, low.Gain, high.Gain, frontierHeight)
		grid[frontierHeight-1-y][x] = mark(i)
	}
	top, bottom := words(high.Gain), words(low.Gain)
	margin := max(utf8.RuneCountInString(top), utf8.RuneCountInString(bottom))
	b.WriteString(gain + "\n")
	for y, line := range grid {
		label := ""
		switch y {
		case 0:
			label = top
		case frontierHeight - 1:
			label = bottom
		}
		b.WriteString(strings.Repeat(" ", margin-utf8.RuneCountInString(label)) + label + " │" +
			strings.TrimRight(strings.Join(line, ""), " ") + "\n")
	}
	from, to := figures.Number(low.Price, 2), figures.Number(high.Price, 2)
	indent := strings.Repeat(" ", margin+2)
	b.WriteString(strings.Repeat(" ", margin+1) + "└" + strings.Repeat("─", frontierWidth) + "\n")
	between := max(frontierWidth-len(from)-len(to), 1)
	if n := between - len(price); n >= 2 {
		fmt.Fprintf(&b, "%s%s%s%s%s%s\n", indent, from, strings.Repeat(" ", n/2), price, strings.Repeat(" ", n-n/2), to)
	}
	return b.String()
}

// scaled maps x from [low, high] to an index from 0 to places−1.
func scaled(x, low, high float64, places int) int {
	if high <= low {
		return 0
	}
	return int((x-low)/(high-low)*float64(places-1) + 0.5)
}
