package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/uuid"
)

// bill returns the bill of materials of an image as CycloneDX: the program and all
// modules that are linked into it as the program itself tells them, the packages of
// Debian, and ONNX Runtime. Equal images have equal bills.
func (b *builder) bill(arch, file string, packages []pin, runtime pin) ([]byte, error) {
	info, err := buildinfo.ReadFile(file)
	if err != nil {
		return nil, err
	}
	image := cdx.Component{
		BOMRef: "image", Type: cdx.ComponentTypeContainer, Name: "spotter", Version: b.version,
		PackageURL: "pkg:oci/spotter?arch=" + arch + "&repository_url=ghcr.io%2Fspotter-dev%2Fspotter",
		Licenses:   licence("Apache-2.0"),
	}
	main := component(cdx.ComponentTypeApplication, info.Main.Path, b.version, "pkg:golang/"+info.Main.Path+"@"+escape(b.version))
	main.Licenses, main.Hashes = licence("Apache-2.0"), hash(sumOf(file))
	std := component(cdx.ComponentTypeLibrary, "stdlib", strings.TrimPrefix(info.GoVersion, "go"), "pkg:golang/stdlib@"+strings.TrimPrefix(info.GoVersion, "go"))
	onnx := component(cdx.ComponentTypeLibrary, "onnxruntime", runtime.version, "pkg:github/microsoft/onnxruntime@v"+runtime.version)
	onnx.Licenses, onnx.Hashes = licence("MIT"), hash(runtime.sum)
	all := []cdx.Component{main, std, onnx}
	linked := []string{std.BOMRef, onnx.BOMRef}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		c := component(cdx.ComponentTypeLibrary, m.Path, m.Version, "pkg:golang/"+m.Path+"@"+escape(m.Version))
		all, linked = append(all, c), append(linked, c.BOMRef)
	}
	parts := []string{main.BOMRef}
	for _, p := range packages {
		c := component(cdx.ComponentTypeLibrary, p.name, p.version, "pkg:deb/debian/"+escape(p.name)+"@"+escape(p.version)+"?arch="+arch+"&distro=debian-12")
		c.Hashes = hash(p.sum)
		all, parts = append(all, c), append(parts, c.BOMRef)
	}
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{Component: &image, Timestamp: b.at.UTC().Format(time.RFC3339)}
	bom.Components = &all
	bom.Dependencies = &[]cdx.Dependency{{Ref: image.BOMRef, Dependencies: &parts}, {Ref: main.BOMRef, Dependencies: &linked}}
	return encode(bom)
}

// encode writes a bill, numbered by what it says.
func encode(bom *cdx.BOM) ([]byte, error) {
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

func licence(id string) *cdx.Licenses {
	return &cdx.Licenses{{License: &cdx.License{ID: id}}}
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
