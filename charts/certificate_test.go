package charts

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestCertificate: with a certificate, the user's or cert-manager's, the controller
// serves metrics with it and Prometheus verifies it; without one it cannot.
func TestCertificate(t *testing.T) {
	h := newHelm(t, "")
	monitor := []string{"--set", "metrics.serviceMonitor.enabled=true"}
	for _, c := range []struct {
		set    []string
		secret string
	}{
		{nil, ""},
		{[]string{"--set", "metrics.certificate.secretName=mine"}, "mine"},
		{[]string{"--set", "metrics.certificate.certManager.enabled=true", "--set",
			"metrics.certificate.certManager.issuerRef.name=ca,metrics.certificate.certManager.issuerRef.kind=ClusterIssuer"}, release + "-metrics-tls"},
		{[]string{"--set", "metrics.certificate.secretName=mine", "--set", "metrics.certificate.certManager.enabled=true",
			"--set", "metrics.certificate.certManager.issuerRef.name=ca"}, "mine"},
	} {
		text, all := h.render(t, "spotter", append(monitor, c.set...)...)
		pod := as[appsv1.Deployment](t, find(t, all, "Deployment", release)).Spec.Template.Spec
		mounted := ""
		for _, v := range pod.Volumes {
			if v.Name == "metrics-certificate" {
				mounted = v.Secret.SecretName
			}
		}
		if given := configuration(t, all).Metrics.CertDir == "/etc/spotter/metrics-certificate"; mounted != c.secret ||
			given != (c.secret != "") {
			t.Errorf("%v: the secret %q is mounted, want %q; named to the controller: %t", c.set, mounted, c.secret, given)
		}
		endpoints, _, _ := unstructured.NestedSlice(find(t, all, "ServiceMonitor", release).Object, "spec", "endpoints")
		tls := endpoints[0].(map[string]any)["tlsConfig"].(map[string]any)
		name, _, _ := unstructured.NestedString(tls, "ca", "secret", "name")
		server, _, _ := unstructured.NestedString(tls, "serverName")
		if name != c.secret || (server == release+"-metrics."+namespace+".svc") != (c.secret != "") ||
			(tls["insecureSkipVerify"] == true) != (c.secret == "") {
			t.Errorf("%v: Prometheus verifies by %v", c.set, tls)
		}
		if made := strings.Contains(text, "kind: Certificate\n"); made != strings.Contains(strings.Join(c.set, " "), "certManager") {
			t.Errorf("%v: a Certificate is made: %t", c.set, made)
		} else if made {
			x := find(t, all, "Certificate", release+"-metrics")
			names, _, _ := unstructured.NestedStringSlice(x.Object, "spec", "dnsNames")
			if secret, _, _ := unstructured.NestedString(x.Object, "spec", "secretName"); secret != c.secret || !slices.Contains(names, server) {
				t.Errorf("%v: the Certificate is %v", c.set, x.Object["spec"])
			}
		}
	}
	for _, set := range [][]string{
		{"--set", "metrics.certificate.certManager.enabled=true"}, {"--set", "metrics.certificate.secretName=mine", "--set",
			"metrics.secure=false"},
	} {
		if _, err := h.run(append([]string{"template", release, "spotter"}, set...)...); err == nil ||
			!strings.Contains(err.Error(), "metrics.") {
			t.Errorf("%v: %v", set, err)
		}
	}
}
