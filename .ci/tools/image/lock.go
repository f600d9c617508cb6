package main

import (
	"bufio"
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
)

// A pin is one thing that the image is made of and that is not built here.
type pin struct {
	// source is debian, npm or notices: the file with the notices of third parties of
	// ONNX Runtime, which is no part of its npm package.
	source  string
	name    string
	version string

	// arch is the architecture of the image, as Go calls it, or any.
	arch string

	// sum is the SHA-256 of the Debian package, or of the library that is taken out
	// of the npm package, in hexadecimal.
	sum string
}

func (p pin) String() string { return p.name + " " + p.version }

// noticesSource is the source of the pin of the notices.
const noticesSource = "notices"

// lockHeader begins the file of pins.
const lockHeader = `# What the image is made of besides what is built here: source, name, version,
# architecture, and the SHA-256 of the Debian package or of the library in the npm
# package. ` + "`make image-lock`" + ` writes the newest packages of Debian 12, and with
# IMAGE_FLAGS='--onnxruntime-notices FILE' the notices of third parties of ONNX Runtime.
`

// readLock reads the file of pins.
func readLock(name string) ([]pin, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var all []pin
	s := bufio.NewScanner(f)
	for line := 1; s.Scan(); line++ {
		text, _, _ := strings.Cut(s.Text(), "#")
		fields := strings.Fields(text)
		if len(fields) == 0 {
			continue
		}
		p, err := readPin(fields)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, line, err)
		}
		if slices.ContainsFunc(all, func(o pin) bool { return o.source == p.source && o.name == p.name && o.arch == p.arch }) {
			return nil, fmt.Errorf("%s:%d: %s for %s stands twice", name, line, p.name, p.arch)
		}
		all = append(all, p)
	}
	return all, s.Err()
}

func readPin(fields []string) (pin, error) {
	if len(fields) != 5 {
		return pin{}, fmt.Errorf("%d words, want source, name, version, architecture and SHA-256", len(fields))
	}
	p := pin{fields[0], fields[1], fields[2], fields[3], fields[4]}
	if !slices.Contains([]string{"debian", "npm", noticesSource}, p.source) {
		return pin{}, fmt.Errorf("source %q: want debian, npm or %s", p.source, noticesSource)
	}
	if _, ok := platforms[p.arch]; !ok && (p.source != noticesSource || p.arch != "any") {
		return pin{}, fmt.Errorf("architecture %q: want one of %s", p.arch, strings.Join(architectures(), ", "))
	}
	if sum, err := hex.DecodeString(p.sum); err != nil || len(sum) != 32 {
		return pin{}, fmt.Errorf("SHA-256 %q: want 64 hexadecimal digits", p.sum)
	}
	return p, nil
}

// writeLock writes the file of pins, in an order that does not change.
func writeLock(name string, all []pin) error {
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b pin) int {
		return cmp.Or(cmp.Compare(a.source, b.source), cmp.Compare(a.name, b.name), cmp.Compare(a.arch, b.arch))
	})
	var out strings.Builder
	out.WriteString(lockHeader)
	for _, p := range all {
		fmt.Fprintln(&out, p.source, p.name, p.version, p.arch, p.sum)
	}
	return os.WriteFile(name, []byte(out.String()), 0o644)
}

// of returns the pins of a source and an architecture. That there are none is an error.
func of(all []pin, source, arch string) ([]pin, error) {
	var some []pin
	for _, p := range all {
		if p.source == source && p.arch == arch {
			some = append(some, p)
		}
	}
	if len(some) == 0 {
		return nil, errors.New("nothing of " + source + " is pinned for " + arch)
	}
	return some, nil
}
