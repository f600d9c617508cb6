package importer

import (
	"strings"
)

// regionPrefixes maps the prefixes of AWS availability zone IDs, such as use1 in use1-az4, to
// regions (AWS documentation, "AZ IDs").
var regionPrefixes = map[string]string{
	"afs1": "af-south-1", "ape1": "ap-east-1", "ape2": "ap-east-2",
	"apne1": "ap-northeast-1", "apne2": "ap-northeast-2", "apne3": "ap-northeast-3",
	"aps1": "ap-south-1", "aps2": "ap-south-2",
	"apse1": "ap-southeast-1", "apse2": "ap-southeast-2", "apse3": "ap-southeast-3",
	"apse4": "ap-southeast-4", "apse5": "ap-southeast-5", "apse6": "ap-southeast-6", "apse7": "ap-southeast-7",
	"cac1": "ca-central-1", "caw1": "ca-west-1",
	"cnn1": "cn-north-1", "cnnw1": "cn-northwest-1",
	"euc1": "eu-central-1", "euc2": "eu-central-2", "eun1": "eu-north-1",
	"eus1": "eu-south-1", "eus2": "eu-south-2",
	"euw1": "eu-west-1", "euw2": "eu-west-2", "euw3": "eu-west-3",
	"ilc1": "il-central-1", "mec1": "me-central-1", "mes1": "me-south-1", "mxc1": "mx-central-1",
	"sae1": "sa-east-1", "use1": "us-east-1", "use2": "us-east-2",
	"usge1": "us-gov-east-1", "usgw1": "us-gov-west-1", "usw1": "us-west-1", "usw2": "us-west-2",
}

// regionOf returns the AWS region of a zone's name (us-east-1a) or ID (use1-az4), and whether it is
// an ID. The region is "" if zone is neither.
func regionOf(zone string) (region string, id bool) {
	if prefix, number, ok := strings.Cut(zone, "-az"); ok && isNumber(number) {
		prefix, _, _ = strings.Cut(prefix, "-") // of the ID of a local zone, as usw2-lax1-az1
		return regionPrefixes[prefix], true
	}
	// A name consists of two or three words, a number and a letter. The name of a local zone
	// continues after the number, as in us-west-2-lax-1a.
	parts := strings.Split(zone, "-")
	for i, part := range parts {
		if i < 2 || part == "" || part[0] < '0' || part[0] > '9' {
			continue
		}
		digits := strings.TrimRight(part, "abcdefghijklmnopqrstuvwxyz")
		lettered := len(part) == len(digits)+1
		local := i < len(parts)-1 && part == digits
		if !isNumber(digits) || !lettered && !local {
			return "", false
		}
		return strings.Join(append(parts[:i:i], digits), "-"), false
	}
	return "", false
}

func isNumber(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}
