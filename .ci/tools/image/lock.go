package main

import (
	"cmp"
	"encoding/csv"
	"encoding/hex"
	"fmt"
	"os"
	"slices"
	"strings"
)

// A pin is one thing that the image is made of and that is not built here.
type pin struct {
	// source is debian, npm or notices. The latter is the file with ONNX Runtime's
	// third-party notices, which its npm package does not contain.
	source  string
	name    string
	version string

	// arch is the architecture of the image, as Go names it, or any.
	arch string

	// sum is the SHA-256 of the Debian package, or of the library that is taken out
	// of the npm package, in hexadecimal.
	sum string
}

func (p pin) String() string { return p.name + " " + p.version }

// noticesSource is the source of the pin of the notices.
const noticesSource = "notices"

// lockHeader is the head of the file of pins.
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
	r := csv.NewReader(f)
	r.Comma, r.Comment, r.FieldsPerRecord = ' ', '#', 5
	rows, err := r.ReadAll()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	var all []pin
	for _, w := range rows {
		p := pin{w[0], w[1], w[2], w[3], w[4]}
		_, known := platforms[p.arch]
		sum, _ := hex.DecodeString(p.sum)
		switch {
		case !slices.Contains([]string{"debian", "npm", noticesSource}, p.source):
			err = fmt.Errorf("%s: source %q: want debian, npm or %s", name, p.source, noticesSource)
		case !known && (p.source != noticesSource || p.arch != "any"):
			err = fmt.Errorf("%s: architecture %q: want one of %s", name, p.arch, strings.Join(architectures(), ", "))
		case len(sum) != 32:
			err = fmt.Errorf("%s: SHA-256 %q: want 64 hexadecimal digits", name, p.sum)
		case slices.ContainsFunc(all, func(o pin) bool { return o.source == p.source && o.name == p.name && o.arch == p.arch }):
			err = fmt.Errorf("%s: %s for %s is pinned twice", name, p.name, p.arch)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

// writeLock writes the file of pins, in an order that does not change.
func writeLock(name string, all []pin) error {
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b pin) int {
		return cmp.Or(cmp.Compare(a.source, b.source), cmp.Compare(a.name, b.name), cmp.Compare(a.arch, b.arch))
	})
	out := lockHeader
	for _, p := range all {
		out += fmt.Sprintln(p.source, p.name, p.version, p.arch, p.sum)
	}
	return os.WriteFile(name, []byte(out), 0o644)
}

// of returns the pins of a source and an architecture. No such pin is an error.
func of(all []pin, source, arch string) ([]pin, error) {
	some := slices.DeleteFunc(slices.Clone(all), func(p pin) bool { return p.source != source || p.arch != arch })
	if len(some) == 0 {
		return nil, fmt.Errorf("%s: nothing of %s is pinned for %s", lockFile, source, arch)
	}
	return some, nil
}
