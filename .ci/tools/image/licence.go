package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/licensecheck"
)

// licencesOf is the image's folder for the licences of the modules.
const licencesOf = "usr/share/doc/spotter/licenses/"

// granting is what files with a licence are called, and not those with what goes along
// with one.
var granting = regexp.MustCompile(`(?i)^(licen[cs]es?|copying)([-._].*)?$`)

// coverageMin is the least part of a licence's file, in percent, that must match a known
// licence. Most files also contain the names of authors.
const coverageMin = 75

// moduleLicences returns the licences of a module as an SPDX expression, from the files in
// the folders of its linked packages and in the folders above them. Several licences are
// joined by AND; only an expression of readByPeople may offer a choice.
func moduleLicences(t tree, module string) (string, error) {
	whole, mentioned := map[string]bool{}, map[string]bool{}
	for _, name := range sortedKeys(t) {
		if !strings.HasPrefix(name, licencesOf+module+"/") || !granting.MatchString(path.Base(name)) {
			continue
		}
		if x, ok := readByPeople[sum(t[name].Data)]; ok {
			whole[x] = true
			continue
		}
		found := licensecheck.Scan(t[name].Data)
		if len(found.Match) == 0 {
			return "", fmt.Errorf("%s is no licence that is known: read it", name)
		}
		for _, m := range found.Match {
			if m.IsURL || found.Percent < coverageMin {
				mentioned[m.ID] = true
			} else {
				whole[m.ID] = true
			}
		}
	}
	for id := range mentioned {
		if !whole[id] {
			return "", fmt.Errorf("%s speaks of the licence %s, and its text is not there: read it", module, id)
		}
	}
	if len(whole) == 0 {
		return "", fmt.Errorf("%s has no licence that is known", module)
	}
	return strings.Join(slices.Sorted(maps.Keys(whole)), " AND "), nil
}

// readByPeople are the expressions of licences' files that no program knows, by the
// SHA-256 of the file.
var readByPeople = map[string]string{
	"d3ba056adc2b7909e95681deaae397fb37c97ed491a920f491214f07b62c41d0": "(FTL OR GPL-2.0-or-later)", // github.com/golang/freetype

	// github.com/modelcontextprotocol/go-sdk; its third licence, CC-BY-4.0, is that of documentation,
	// which no program links.
	"af679003d933f045393a6a029f43da113f9ae364eac651d9ae268392985580f5": "Apache-2.0 AND MIT",
}

// sum returns the SHA-256 of data.
func sum(data []byte) string {
	s := sha256.Sum256(data)
	return hex.EncodeToString(s[:])
}

// A debianLicence is what was read in the copyright file of a package.
type debianLicence struct {
	// expression is the SPDX expression of what the package is made of in the main; the
	// file itself, which is in the image, has those of smaller parts.
	expression string

	// sum is the SHA-256 of the file that was read.
	sum string
}

// debianLicences are those of the packages below everything. Most of these files are
// prose, so that they were read by people.
var debianLicences = map[string]debianLicence{
	"base-files": {"GPL-2.0-or-later", "fd7e4aae7e7b05f217bcf2d02322825c360e66c52c4c2f1b28d784d6297a1c23"},
	"ca-certificates": {"GPL-2.0-or-later AND MPL-2.0",
		"e85e1bcad3a915dc7e6f41412bc5bdeba275cadd817896ea0451f2140a93967c"},
	"gcc-12-base": {"GPL-3.0-or-later", "da8191658b3452ce9caf31638ba61dab31a38c619fa39df119812e050f592fd3"},
	"libc6":       {"LGPL-2.1-or-later", "40c7e1f2118531f038ca22999bd976901254e1bc5cd1b0f0211bdd064c599987"},
	"libgcc-s1": {"GPL-3.0-or-later WITH GCC-exception-3.1",
		"da8191658b3452ce9caf31638ba61dab31a38c619fa39df119812e050f592fd3"},
	"libstdc++6": {"GPL-3.0-or-later WITH GCC-exception-3.1",
		"da8191658b3452ce9caf31638ba61dab31a38c619fa39df119812e050f592fd3"},
	"netbase": {"GPL-2.0-only", "795b66147ea5ad692991caa7008ece551fb0fa88b9c53656223bd1518dc58ab2"},
	"tzdata":  {"LicenseRef-public-domain", "cb61132bc0fc7b26ef5a82ee18b2fb644a1362f4f286ed980ff22e408471f59a"},
}

// packageLicence returns the licence of a package of Debian, and an error where its
// copyright file is another than the one that was read.
func packageLicence(base tree, name string) (string, error) {
	known, ok := debianLicences[name]
	if !ok {
		return "", fmt.Errorf("the licence of the package %s is not known: read its copyright file", name)
	}
	// The documents of gcc's packages are in one folder, to which the others link.
	text, err := fs.ReadFile(base, "usr/share/doc/"+name+"/copyright")
	if err != nil {
		return known.expression, err
	}
	if got := sum(text); got != known.sum {
		return known.expression,
			fmt.Errorf("the copyright file of the package %s has the SHA-256 %s, and %s was read: read it again", name, got,
				known.sum)
	}
	return known.expression, nil
}

// licences writes an expression: a plain identifier as such, since readers of bills look
// these up.
func licences(expression string) *cdx.Licenses {
	if strings.Contains(expression, " ") || strings.HasPrefix(expression, "LicenseRef-") {
		return &cdx.Licenses{{Expression: expression}}
	}
	return &cdx.Licenses{{License: &cdx.License{ID: expression}}}
}
