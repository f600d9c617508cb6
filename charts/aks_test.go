package charts

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// A bicep has the names of a template. It is read without the compiler, which no registry of packages
// that the tests may use has.
type bicep struct {
	required, optional, outputs []string // parameters without and with a default, and outputs
	declared                    []string // everything that an expression may name
	faults                      []string
}

// bicepToken matches a comment, a string, a member or the key of a property, a name, or a bracket.
var bicepToken = regexp.MustCompile(`//[^\n]*|'(?:\\.|[^'\\])*'|[.@]?[A-Za-z_]\w*\s*:?|[(){}\[\]]`)

// bicepKnown are words and functions of the language that the template uses.
var bicepKnown = strings.Fields("param var resource output string int bool array object for in description minLength maxLength minValue maxValue " +
	"resourceGroup take replace uniqueString guid subscriptionResourceId true false")

// readBicep reads a template. Faults are brackets that are not balanced and names that are not declared.
func readBicep(text string) *bicep {
	b := &bicep{}
	for _, m := range regexp.MustCompile(`(?m)^param (\w+) \w+( =)?`).FindAllStringSubmatch(text, -1) {
		if m[2] == "" {
			b.required = append(b.required, m[1])
		} else {
			b.optional = append(b.optional, m[1])
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^output (\w+) `).FindAllStringSubmatch(text, -1) {
		b.outputs = append(b.outputs, m[1])
	}
	for _, m := range regexp.MustCompile(`(?m)^(?:var|resource) (\w+)|\[for (\w+) in`).FindAllStringSubmatch(text, -1) {
		b.declared = append(b.declared, m[1]+m[2])
	}
	b.declared = slices.Concat(b.declared, b.required, b.optional)
	b.check(text, slices.Concat(bicepKnown, b.outputs))
	return b
}

// check notes what is wrong with text, in which the known names need no declaration.
func (b *bicep) check(text string, known []string) {
	var open []string
	for _, token := range bicepToken.FindAllString(text, -1) {
		switch closing := map[string]string{")": "(", "}": "{", "]": "["}[token]; {
		case strings.HasPrefix(token, "//"), strings.HasPrefix(token, "."), strings.HasSuffix(token, ":"):
		case strings.HasPrefix(token, "'"):
			for _, m := range regexp.MustCompile(`\$\{([^}]*)}`).FindAllStringSubmatch(token, -1) {
				b.check(m[1], known)
			}
		case slices.Contains([]string{"(", "{", "["}, token):
			open = append(open, token)
		case closing != "":
			if len(open) == 0 || open[len(open)-1] != closing {
				b.faults = append(b.faults, fmt.Sprintf("%s closes %v", token, open))
				return
			}
			open = open[:len(open)-1]
		default:
			if name := strings.TrimSpace(strings.TrimPrefix(token, "@")); !slices.Contains(b.declared, name) && !slices.Contains(known, name) {
				b.faults = append(b.faults, name+" is not declared")
			}
		}
	}
	if len(open) > 0 {
		b.faults = append(b.faults, fmt.Sprintf("%v are not closed", open))
	}
}

// aksFile returns a file of deploy/aks.
func aksFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "deploy", "aks", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// An aksWorkflow is what of deploy.yml is looked at here.
type aksWorkflow struct {
	On struct {
		Dispatch struct {
			Inputs map[string]struct {
				Default string
				Options []string
			}
		} `json:"workflow_dispatch"`
	} `json:"true"` // which "on" is in YAML 1.1
	Jobs map[string]struct {
		Environment string
		Env         map[string]string
		Steps       []struct{ Name, Run string }
	}
}

func readAKSWorkflow(t *testing.T) *aksWorkflow {
	t.Helper()
	var w aksWorkflow
	if err := yaml.Unmarshal([]byte(aksFile(t, "deploy.yml")), &w); err != nil {
		t.Fatal(err)
	}
	return &w
}

// TestAKSTemplate: names in the template are declared, the file of parameters gives those that have
// no default and no others, and the identity trusts the environment that the workflow runs in.
func TestAKSTemplate(t *testing.T) {
	text := aksFile(t, "main.bicep")
	b := readBicep(text)
	for _, fault := range b.faults {
		t.Error(fault)
	}
	var given []string
	parameters := aksFile(t, "main.bicepparam")
	for _, m := range regexp.MustCompile(`(?m)^param (\w+) = `).FindAllStringSubmatch(parameters, -1) {
		given = append(given, m[1])
	}
	for _, name := range given {
		if !slices.Contains(b.required, name) && !slices.Contains(b.optional, name) {
			t.Errorf("main.bicepparam gives %s, which is no parameter", name)
		}
	}
	for _, name := range b.required {
		if !slices.Contains(given, name) {
			t.Errorf("main.bicepparam does not give %s", name)
		}
	}
	if !strings.Contains(parameters, "param environment = '"+readAKSWorkflow(t).Jobs["deploy"].Environment+"'") {
		t.Error("the workflow runs in another environment than the identity trusts")
	}
	for old, broken := range map[string]string{"scope: registry": "scope: registries", "'${name}-deployer'": "'${names}-deployer'",
		"properties: { adminUserEnabled: false }": "properties: { adminUserEnabled: false"} {
		if changed := strings.Replace(text, old, broken, 1); changed == text || len(readBicep(changed).faults) == 0 {
			t.Errorf("%q in place of %q is no fault", broken, old)
		}
	}
}

// stubs writes programs that note how they are called and answer what the workflow asks, and returns
// their folder and the file of the calls.
func stubs(t *testing.T, outputs []string, digest string) (bin, calls string) {
	t.Helper()
	made := map[string]map[string]string{}
	for _, name := range outputs {
		made[name] = map[string]string{"value": "the-" + strings.ToLower(name)}
	}
	text, err := json.Marshal(made)
	if err != nil {
		t.Fatal(err)
	}
	bin, calls = t.TempDir(), filepath.Join(t.TempDir(), "calls")
	for name, answer := range map[string]string{
		"az":     `[ "$1 $2 $3" != "deployment group show" ] || cat <<'END'` + "\n" + string(text) + "\nEND",
		"docker": `[ "$1" != inspect ] || echo "the-registryserver/spotter@` + digest + `"`,
		"git":    "echo abc1234", "curl": `echo '{"value":"token"}'`, "helm": "", "kubelogin": "",
	} {
		stub := "#!/bin/bash\nprintf '%s\\n' \"" + name + "\" \"$@\" -- >>'" + calls + "'\n" + answer + "\n"
		if err := os.WriteFile(filepath.Join(bin, name), []byte(stub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return bin, calls
}

// playAKS runs the steps of the workflow as a runner does, and returns the calls of other programs.
func playAKS(t *testing.T, w *aksWorkflow, outputs []string, digest string) (calls [][]string) {
	t.Helper()
	if _, err := exec.LookPath("jq"); err != nil {
		t.Skip(err)
	}
	bin, noted := stubs(t, outputs, digest)
	job := w.Jobs["deploy"]
	env := []string{"PATH=" + bin + ":" + os.Getenv("PATH"), "ACTIONS_ID_TOKEN_REQUEST_TOKEN=t", "ACTIONS_ID_TOKEN_REQUEST_URL=https://token.invalid/?x"}
	for name, value := range job.Env {
		env = append(env, name+"="+regexp.MustCompile(`\$\{\{ (?:vars|inputs)\.(\w+) }}`).ReplaceAllString(value, "given-$1"))
	}
	for _, step := range job.Steps {
		if strings.Contains(step.Run, "${{") {
			t.Errorf("%s: the script has an expression, which could be anything", step.Name)
		}
		set := filepath.Join(t.TempDir(), "env")
		if err := os.WriteFile(set, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		c := exec.Command("bash", "-eu", "-c", step.Run)
		c.Env = slices.Concat(env, []string{"GITHUB_ENV=" + set})
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", step.Name, err, out)
		}
		more, err := os.ReadFile(set)
		if err != nil {
			t.Fatal(err)
		}
		env = append(env, strings.Fields(string(more))...)
	}
	text, err := os.ReadFile(noted)
	if err != nil {
		t.Fatal(err)
	}
	for _, call := range strings.Split(strings.TrimSuffix(string(text), "\n--\n"), "\n--\n") {
		calls = append(calls, strings.Split(call, "\n"))
	}
	return calls
}

// TestAKSWorkflow: the workflow reads outputs that the template has, and the chart takes the values that
// it sets: for each mode, rendered, its Deployment runs the image that was pushed.
func TestAKSWorkflow(t *testing.T) {
	b, w := readBicep(aksFile(t, "main.bicep")), readAKSWorkflow(t)
	digest := "sha256:" + strings.Repeat("0f", 32)
	calls := playAKS(t, w, b.outputs, digest)
	upgrade := slices.IndexFunc(calls, func(c []string) bool { return len(c) > 1 && c[0] == "helm" && c[1] == "upgrade" })
	for _, want := range []string{
		"az login --service-principal --username given-AZURE_CLIENT_ID --tenant given-AZURE_TENANT_ID --federated-token token --output none",
		"az acr login --name the-registryname",
		"docker push the-registryserver/spotter:abc1234",
		"az aks get-credentials --resource-group given-AZURE_RESOURCE_GROUP --name the-clustername --overwrite-existing",
		"helm test spotter --namespace spotter",
	} {
		if !slices.ContainsFunc(calls, func(c []string) bool { return strings.Join(c, " ") == want }) {
			t.Errorf("%s is not called, in %q", want, calls)
		}
	}
	if upgrade < 0 {
		t.Fatalf("nothing is installed: %q", calls)
	}
	var sets []string
	for i, arg := range calls[upgrade] {
		if arg == "--set" {
			sets = append(sets, calls[upgrade][i+1])
		}
	}
	modes := w.On.Dispatch.Inputs["mode"]
	if len(sets) < 5 || !slices.Contains(modes.Options, modes.Default) || !slices.Contains(sets, "mode=given-mode") {
		t.Fatalf("the values are %q, the modes %+v", sets, modes)
	}
	h := newHelm(t, "")
	for _, mode := range modes.Options {
		values := strings.Split(strings.ReplaceAll(strings.Join(sets, "\x00"), "given-mode", mode), "\x00")
		var args []string
		for _, v := range values {
			args = append(args, "--set", v)
		}
		_, all := h.render(t, "spotter", args...)
		image, classes := "", false
		for _, o := range all {
			switch o.GetKind() {
			case "Deployment":
				image = as[appsv1.Deployment](t, o).Spec.Template.Spec.Containers[0].Image
			case "ClusterRole":
				for _, r := range as[rbacv1.ClusterRole](t, o).Rules {
					classes = classes || slices.Contains(r.Resources, "aksnodeclasses")
				}
			}
		}
		if image != "the-registryserver/spotter@"+digest || !classes {
			t.Errorf("mode %s runs %s, and reads node classes of AKS: %v", mode, image, classes)
		}
	}
}
