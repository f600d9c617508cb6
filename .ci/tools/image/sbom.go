package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/uuid"
)

// materials are what an image is made of.
type materials struct {
	arch string

	// file is the program, own the image's files of the program, and base those of the packages.
	file      string
	own, base tree

	packages []pin
	runtime  pin

	// locked refuses packages whose licences may have changed since they were read.
	locked bool
}

// module returns the licences of a module, or of Go itself.
func (m *materials) module(path string) (*cdx.Licenses, error) {
	expression, err := moduleLicences(m.own, path)
	if err != nil {
		return nil, err
	}
	return licences(expression), nil
}

// bill returns the bill of materials of an image in CycloneDX format: the program with all
// modules linked into it, as its build information lists them, the Debian packages, and
// ONNX Runtime, each with its licences, whose texts are in the trees. Equal images have
// equal bills.
func (b *builder) bill(m materials) ([]byte, error) {
	info, err := buildinfo.ReadFile(m.file)
	if err != nil {
		return nil, err
	}
	arch := m.arch
	image := cdx.Component{
		BOMRef: "image", Type: cdx.ComponentTypeContainer, Name: "spotter", Version: b.version,
		PackageURL: "pkg:oci/spotter?arch=" + arch + "&repository_url=ghcr.io%2Fspotter-dev%2Fspotter",
		Licenses:   licences("Apache-2.0"),
	}
	main := b.main(info, m.file)
	modules, err := m.modules(info)
	if err != nil {
		return nil, err
	}
	onnx := component(cdx.ComponentTypeLibrary, "onnxruntime", m.runtime.version,
		"pkg:github/microsoft/onnxruntime@v"+m.runtime.version)
	onnx.Licenses, onnx.Hashes = licences("MIT"), hash(m.runtime.sum)
	modules = slices.Insert(modules, 1, onnx)
	all := append([]cdx.Component{main}, modules...)
	parts := []string{main.BOMRef}
	for _, p := range m.packages {
		c := component(cdx.ComponentTypeLibrary, p.name, p.version,
			"pkg:deb/debian/"+escape(p.name)+"@"+escape(p.version)+"?arch="+arch+"&distro=debian-12")
		expression, err := packageLicence(m.base, p.name)
		if err != nil && (m.locked || expression == "") {
			return nil, err
		}
		if err != nil {
			fmt.Fprintf(b.said, "warning: %v\n", err)
		}
		c.Licenses, c.Hashes = licences(expression), hash(p.sum)
		all, parts = append(all, c), append(parts, c.BOMRef)
	}
	return b.encode(&image, all, cdx.Dependency{Ref: image.BOMRef, Dependencies: &parts},
		cdx.Dependency{Ref: main.BOMRef, Dependencies: refs(modules)})
}

// main returns the program as a component.
func (b *builder) main(info *buildinfo.BuildInfo, file string) cdx.Component {
	c := component(cdx.ComponentTypeApplication, info.Main.Path, b.version,
		"pkg:golang/"+info.Main.Path+"@"+escape(b.version))
	c.Licenses, c.Hashes = licences("Apache-2.0"), hash(sumOf(file))
	return c
}

// modules returns Go's own library and the modules that are linked into a program.
func (m *materials) modules(info *buildinfo.BuildInfo) ([]cdx.Component, error) {
	std := component(cdx.ComponentTypeLibrary, "stdlib", strings.TrimPrefix(info.GoVersion, "go"),
		"pkg:golang/stdlib@"+strings.TrimPrefix(info.GoVersion, "go"))
	var err error
	if std.Licenses, err = m.module("go"); err != nil {
		return nil, err
	}
	all := []cdx.Component{std}
	for _, d := range info.Deps {
		found, err := m.module(d.Path + "@" + d.Version)
		if err != nil {
			return nil, err
		}
		if d.Replace != nil {
			d = d.Replace
		}
		c := component(cdx.ComponentTypeLibrary, d.Path, d.Version, "pkg:golang/"+d.Path+"@"+escape(d.Version))
		c.Licenses = found
		all = append(all, c)
	}
	return all, nil
}

// refs returns the references of components.
func refs(all []cdx.Component) *[]string {
	var out []string
	for _, c := range all {
		out = append(out, c.BOMRef)
	}
	return &out
}

// programBill writes the bill of materials of a program that is released by itself:
// itself, Go's own library, and the modules that are linked into it.
func (b *builder) programBill(file string, o options) error {
	if o.out == "" {
		return wrong(errors.New("--out: name the file"))
	}
	info, err := buildinfo.ReadFile(file)
	if err != nil {
		return wrong(err)
	}
	m := materials{file: file, own: tree{}}
	if err := b.addLicences(m.own, file); err != nil {
		return err
	}
	main := b.main(info, file)
	modules, err := m.modules(info)
	if err != nil {
		return err
	}
	data, err := b.encode(&main, modules, cdx.Dependency{Ref: main.BOMRef, Dependencies: refs(modules)})
	if err != nil {
		return err
	}
	return os.WriteFile(o.out, data, 0o644)
}

// notices writes the licences of all modules of a program, and of Go, one text after the
// other. Equal texts are written once, below the names of all modules that they apply to.
func (b *builder) notices(file string, o options) error {
	if o.out == "" {
		return wrong(errors.New("--out: name the file"))
	}
	t := tree{}
	if err := b.addLicences(t, file); err != nil {
		return err
	}
	names := map[string][]string{} // by text
	var texts []string             // in the order of the first name
	for _, name := range sortedKeys(t) {
		text := string(t[name].Data)
		if names[text] == nil {
			texts = append(texts, text)
		}
		names[text] = append(names[text], strings.TrimPrefix(name, licencesOf))
	}
	var out bytes.Buffer
	for _, text := range texts {
		fmt.Fprintf(&out, "==== %s\n\n%s\n\n", strings.Join(names[text], "\n==== "), strings.TrimSpace(text))
	}
	return os.WriteFile(o.out, out.Bytes(), 0o644)
}

// encode writes the bill of a subject. Its serial number follows from its content.
func (b *builder) encode(subject *cdx.Component, components []cdx.Component, on ...cdx.Dependency) ([]byte, error) {
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{Component: subject, Timestamp: b.at.UTC().Format(time.RFC3339)}
	bom.Components, bom.Dependencies = &components, &on
	var out bytes.Buffer
	if err := cdx.NewBOMEncoder(&out, cdx.BOMFileFormatJSON).Encode(bom); err != nil {
		return nil, err
	}
	sum := sha256.Sum256(out.Bytes())
	bom.SerialNumber = "urn:uuid:" + uuid.NewSHA1(uuid.NameSpaceURL, sum[:]).String()
	out.Reset()
	err := cdx.NewBOMEncoder(&out, cdx.BOMFileFormatJSON).SetPretty(true).Encode(bom)
	return out.Bytes(), err
}

func component(kind cdx.ComponentType, name, version, url string) cdx.Component {
	return cdx.Component{BOMRef: url, Type: kind, Name: name, Version: version, PackageURL: url}
}

func hash(sum string) *[]cdx.Hash {
	if b, err := hex.DecodeString(sum); err != nil || len(b) != sha256.Size {
		return nil
	}
	return &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: sum}}
}

// escape writes a name or a version as package URLs do.
func escape(s string) string {
	return strings.NewReplacer("+", "%2B", ":", "%3A", "@", "%40", " ", "%20").Replace(s)
}
