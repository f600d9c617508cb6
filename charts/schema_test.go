package charts

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRefusals shows of each kind of wrong value that it is refused, with the place
// and what is wrong in the message.
func TestRefusals(t *testing.T) {
	h := newHelm(t, "")
	for _, c := range []struct {
		set  string
		want []string
	}{
		{"mod=active", []string{"mod"}},
		{"aws.region=us-east-1", []string{"aws", "region"}},
		{"metrics.serviceMonitor.enable=true", []string{"serviceMonitor", "enable"}},
		{"mode=on", []string{"mode", "shadow", "active"}},
		{"mode=1", []string{"mode", "string"}},
		{"replicas=two", []string{"replicas", "integer"}},
		{"replicas=0", []string{"replicas", "minimum"}},
		{"replicas=11", []string{"replicas", "maximum"}},
		{"replicas=1.5", []string{"replicas", "integer"}},
		{"backends={gke}", []string{"backends", "karpenter"}},
		{"backends=karpenter", []string{"backends", "array"}},
		{"backends=", []string{"backends", "array"}},
		{"backends={asg}", []string{"aws", "regions"}},
		{"backends={rackspace}", []string{"rackspace", "credentialsSecrets"}},
		{"policies=static:share", []string{"policies", "pattern"}},
		{"step=10", []string{"step"}},
		{"step=ten", []string{"step", "pattern"}},
		{"record.keep=7d", []string{"record", "keep"}},
		{"record.keepBytes=lots", []string{"record", "keepBytes"}},
		{"record.bucket.url=gs://x", []string{"bucket", "url"}},
		{"record.bucket.encryption=rot13", []string{"bucket", "encryption"}},
		{"discounts.oneYear=lots", []string{"discounts", "oneYear", "number"}},
		{"log.level=loud", []string{"log", "level"}},
		{"aws.regions={useast}", []string{"regions", "pattern"}},
		{"aws.queueURL=spotter", []string{"queueURL"}},
		{"aws.credentials.method=irsa", []string{"credentials", "roleARN"}},
		{"aws.credentials.method=secret", []string{"credentials", "secretName"}},
		{"aws.credentials.roleARN=spotter", []string{"credentials", "roleARN"}},
		{"karpenter.nodeClassGroups={example.com}", []string{"nodeClassGroups"}},
		{"metrics.compat={datadog}", []string{"compat"}},
		{"image.digest=sha256:abc", []string{"image", "digest"}},
		{"networkPolicy.egress.ports={70000}", []string{"ports", "maximum"}},
		{"podSecurity.runAsUser=0", []string{"runAsUser", "minimum"}},
		{"prices.tracePath=../..", []string{"tracePath"}},
		{"prices.interval=often", []string{"prices", "interval"}},
		{"prices.recorder.schedule=hourly", []string{"recorder", "schedule"}},
		{"prices.recorder.types={m5}", []string{"recorder", "types"}},
		{"prices.recorder.roleARN=spotter", []string{"recorder", "roleARN"}},
		{"models.claim=A", []string{"models", "claim"}},
		{"models.image.path=models", []string{"models", "path"}},
		{"models.timeout=soon", []string{"models", "timeout"}},
		{"models.onnxRuntime=lib.so", []string{"models", "onnxRuntime"}},
		{"notifications.url=hooks.example.com", []string{"notifications", "url"}},
		{"notifications.header=X Token", []string{"notifications", "header"}},
		{"usage.prometheus.url=prometheus:9090", []string{"usage", "prometheus", "url"}},
		{"usage.prometheus.url=http://a:b@c", []string{"usage", "prometheus", "url"}},
		{"usage.prometheus.tokenSecret.key=", []string{"tokenSecret", "key"}},
		{"usage.prometheus.timeout=10", []string{"prometheus", "timeout"}},
		{"cleanup.timeoutSeconds=1", []string{"cleanup", "timeoutSeconds"}},
		{"fullnameOverride=Spotter", []string{"fullnameOverride"}},
		{"extraEnv[0].value=x", []string{"extraEnv", "name"}},
		{"extraArgs=--mode", []string{"extraArgs", "array"}},
		{"writes.qps=0", []string{"writes", "qps", "minimum"}},
		{"writes.burst=1.5", []string{"writes", "burst", "integer"}},
		{"leaderElection.leaseDuration=8", []string{"leaderElection", "leaseDuration"}},
	} {
		out, err := h.run("template", release, "spotter", "--set", c.set)
		if err == nil {
			t.Errorf("%s is taken", c.set)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: the message lacks %q:\n%v", c.set, want, err)
			}
		}
		if out != "" {
			t.Errorf("%s: manifests are printed all the same", c.set)
		}
	}
	if _, err := h.run("template", release, "spotter", "--set-json", "discounts.oneYear=1.2"); err == nil ||
		!strings.Contains(err.Error(), "maximum") {
		t.Errorf("a commitment that saves 120 %%: %v", err)
	}
	if out, err := h.run("template", release, "spotter-crds", "--set", "a=b"); err == nil {
		t.Errorf("the chart spotter-crds takes any value:\n%s", out)
	}
}

// TestSharedVolumeRefused: what no schema can say is refused too, with what to do.
func TestSharedVolumeRefused(t *testing.T) {
	h := newHelm(t, "")
	_, err := h.run("template", release, "spotter", "--set", "record.persistence.enabled=true", "--set",
		"record.persistence.accessModes={ReadWriteOnce}")
	if err == nil || !strings.Contains(err.Error(), "set replicas to 1") {
		t.Errorf("two replicas with one ReadWriteOnce volume: %v", err)
	}
}

// TestContradictionsRefused: of two values that exclude each other both are named.
func TestContradictionsRefused(t *testing.T) {
	h := newHelm(t, "")
	for _, c := range []struct{ set, a, b string }{
		{"models.claim=a,models.image.name=b", "models.claim", "models.image.name"},
		{"prices.recorder.enabled=true", "prices.recorder.regions", "aws.regions"},
		{"gcp.regions={us-central1}", "gcp.regions", "gcp.apiKeySecret.name"},
		{"gcp.apiKeySecret.name=prices", "gcp.regions", "gcp.apiKeySecret.name"},
		{"notifications.headerSecret.name=hook", "notifications.url is empty", "mean nothing"},
		{"usage.prometheus.cpuQuery=up", "usage.prometheus.url is empty", "mean nothing"},
		{"usage.prometheus.url=http://p,usage.prometheus.serviceAccountToken=true,usage.prometheus.tokenSecret.name=x",
			"tokenSecret.name", "serviceAccountToken"},
	} {
		if _, err := h.run("template", release, "spotter", "--set", c.set); err == nil ||
			!strings.Contains(err.Error(), c.a) || !strings.Contains(err.Error(), c.b) {
			t.Errorf("%s: %v", c.set, err)
		}
	}
}

// A node is a part of the schema. It has only the fields that are compared.
type node struct {
	Description          string
	Type                 any
	Properties           map[string]*node
	AdditionalProperties any
}

// TestSchemaIsComplete holds the schema against values.yaml: the same keys with the
// same words, and no others are taken anywhere.
func TestSchemaIsComplete(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("spotter", "values.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	var root node
	if err := json.Unmarshal(text, &root); err != nil {
		t.Fatal(err)
	}
	text, err = os.ReadFile(filepath.Join("spotter", "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	values, err := Values(text)
	if err != nil {
		t.Fatal(err)
	}
	if len(values) < 80 {
		t.Errorf("%d values are documented", len(values))
	}
	documented := map[string]bool{}
	for _, v := range values {
		documented[v.Path] = true
		at := &root
		for _, key := range strings.Split(v.Path, ".") {
			if at.AdditionalProperties != false {
				t.Errorf("above %s other keys are taken", v.Path)
			}
			if at = at.Properties[key]; at == nil {
				break
			}
		}
		switch {
		case at == nil:
			t.Errorf("the schema lacks %s", v.Path)
		case at.Description != v.Text:
			t.Errorf("%s: the schema says %q, and values.yaml %q", v.Path, at.Description, v.Text)
		}
	}
	var leaves func(path string, n *node)
	leaves = func(path string, n *node) {
		if documented[path] || path == "global" {
			return
		}
		if len(n.Properties) == 0 {
			t.Errorf("values.yaml lacks %s", path)
		}
		for key, below := range n.Properties {
			leaves(strings.TrimPrefix(path+"."+key, "."), below)
		}
	}
	for key, n := range root.Properties {
		leaves(key, n)
	}
}
