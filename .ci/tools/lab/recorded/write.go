package recorded

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// The pools of a scenario. The one with accelerators repels other pods, as such
// nodes do wherever they are shared.
const (
	poolGeneral = "general"
	poolGPU     = "gpu"
	gpuTaint    = "nvidia.com/gpu"
)

// namespace is that of the workloads that are made of pods.
const namespace = "recorded"

// vcpuSteps are the upper bounds of a node's size, of which a pool takes the
// least that holds every pod.
var vcpuSteps = []int64{16, 32, 48, 64, 96, 128, 192, 256, 448, 896}

type manifest = map[string]any

// manifests returns all objects of the scenario in the order of the file.
func (r *recording) manifests(o *Options, length time.Duration, jobs []job) ([]manifest, error) {
	all := []manifest{{
		"apiVersion": "spotter.dev/v1alpha1", "kind": "Scenario", "metadata": manifest{"name": o.Name},
		"spec": manifest{"duration": offset(length), "market": manifest{"intensity": 1}},
	}}
	all = append(all, r.pools(o.Nodes, jobs)...)
	all = append(all, r.priorityClasses(jobs)...)
	all = append(all, r.extra...)
	names := map[string]bool{}
	objects := make([]manifest, len(r.objects))
	for i := range r.objects {
		var err error
		if objects[i], err = r.objects[i].manifest(names); err != nil {
			return nil, err
		}
	}
	for i := range r.services {
		all = append(all, r.services[i].manifest(names))
	}
	for i := range jobs {
		all = append(all, jobs[i].manifest(names))
	}
	return append(all, objects...), nil
}

// shapes returns the shapes of all workloads.
func (r *recording) shapes(jobs []job) []shape {
	var all []shape
	for i := range r.services {
		all = append(all, r.services[i].shape)
	}
	for i := range jobs {
		all = append(all, jobs[i].shape)
	}
	for i := range r.objects {
		all = append(all, r.objects[i].shape)
	}
	return all
}

// pools returns a pool without and one with accelerators, where pods need it.
func (r *recording) pools(nodes []Node, jobs []job) []manifest {
	var plain, gpu []shape
	for _, s := range r.shapes(jobs) {
		if s.gpu > 0 {
			gpu = append(gpu, s)
		} else {
			plain = append(plain, s)
		}
	}
	pool := func(name string, shapes []shape) manifest {
		markets := manifest{"minVCPU": 4, "maxVCPU": vcpuBound(shapes, nodes)}
		spec := manifest{
			"backend":  manifest{"karpenter": manifest{"nodeClassName": "default"}},
			"markets":  markets,
			"capacity": manifest{"spotShare": manifest{"min": 0, "max": 1}},
			"disruption": manifest{
				"budget": "10%", "consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "5m",
			},
			"mode": "active",
		}
		if name == poolGPU {
			markets["minGPUs"] = 1
			spec["template"] = manifest{"taints": []any{manifest{"key": gpuTaint, "value": "present", "effect": "NoSchedule"}}}
		}
		return manifest{"apiVersion": "spotter.dev/v1alpha1", "kind": "CapacityPool", "metadata": manifest{"name": name},
			"spec": spec}
	}
	var all []manifest
	if len(plain) > 0 {
		all = append(all, pool(poolGeneral, plain))
	}
	if len(gpu) > 0 {
		all = append(all, pool(poolGPU, gpu))
	}
	return all
}

// vcpuBound returns the least bound under which nodes hold each of shapes.
// Where no nodes are known, those with 2 GiB for each vCPU are, less a fifth.
func vcpuBound(shapes []shape, nodes []Node) int64 {
	for _, bound := range vcpuSteps {
		if !slices.ContainsFunc(shapes, func(s shape) bool {
			if len(nodes) == 0 {
				return max(s.cpu*5/4, s.memory*5/4*1000/2048) > bound*1000
			}
			return !s.fits(nodes, bound)
		}) {
			return bound
		}
	}
	return vcpuSteps[len(vcpuSteps)-1]
}

// priorityClasses returns those that tasks and services use, unless they were
// recorded. They take no place from one another: nodes are added instead.
func (r *recording) priorityClasses(jobs []job) []manifest {
	var used [len(classNames)]bool
	for i := range r.services {
		used[r.services[i].class] = true
	}
	for i := range jobs {
		used[jobs[i].class] = true
	}
	var all []manifest
	for c, value := range [...]int{100, 500, 1000} {
		if used[c] && !slices.ContainsFunc(r.extra, func(m manifest) bool {
			return m["kind"] == "PriorityClass" && m["metadata"].(manifest)["name"] == classNames[c]
		}) {
			all = append(all, manifest{
				"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": manifest{"name": classNames[c]},
				"value": value, "preemptionPolicy": "Never",
			})
		}
	}
	return all
}

// unique returns text, or what is most like it and no workload of the namespace
// is called.
func unique(names map[string]bool, namespace, text string) string {
	n := text
	for k := 2; names[namespace+"/"+n]; k++ {
		suffix := fmt.Sprintf("-%d", k)
		n = text[:min(len(text), 63-len(suffix))] + suffix
	}
	names[namespace+"/"+n] = true
	return n
}

func (s shape) String() string {
	text := fmt.Sprintf("%dm-%dmi", s.cpu, s.memory)
	if s.gpu > 0 {
		text += fmt.Sprintf("-%dgpu", s.gpu)
	}
	return text
}

// pod returns the template of pods of this shape.
func (s shape) pod(app string, c class, restart string) manifest {
	requests := manifest{"cpu": fmt.Sprintf("%dm", s.cpu), "memory": fmt.Sprintf("%dMi", s.memory)}
	spec := manifest{
		"priorityClassName": c.String(),
		"containers": []any{manifest{"name": "main", "image": pauseImage,
			"resources": manifest{"requests": requests}}},
	}
	if s.gpu > 0 {
		requests["nvidia.com/gpu"] = s.gpu
		spec["tolerations"] = []any{manifest{"key": gpuTaint, "operator": "Exists"}}
	}
	if restart != "" {
		spec["restartPolicy"] = restart
	}
	return manifest{"metadata": manifest{"labels": manifest{"app": app}}, "spec": spec}
}

func (s *service) manifest(names map[string]bool) manifest {
	app := s.name
	if app == "" {
		app = fmt.Sprintf("%s-%s", s.class, s.shape)
	}
	app = unique(names, namespace, name(app))
	annotations := manifest{}
	addSchedule(annotations, s.changes)
	if s.startup > 0 {
		annotations["spotter.dev/startup-time"] = offset(s.startup)
	}
	meta := manifest{"name": app, "namespace": namespace}
	if len(annotations) > 0 {
		meta["annotations"] = annotations
	}
	return manifest{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta,
		"spec": manifest{
			"replicas": s.changes[0].pods, "selector": manifest{"matchLabels": manifest{"app": app}}, "template": s.pod(app,
				s.class, ""),
		},
	}
}

// addSchedule adds changes as a replica schedule, unless there is only one.
func addSchedule(annotations manifest, changes []change) {
	if len(changes) == 1 {
		return
	}
	words := make([]string, len(changes))
	for i, c := range changes {
		words[i] = fmt.Sprintf("+%s=%d", offset(c.at), c.pods)
	}
	annotations["spotter.dev/replica-schedule"] = strings.Join(words, " ")
}

func releaseText(releases []release) string {
	words := make([]string, len(releases))
	for i, r := range releases {
		if words[i] = offset(r.at); r.count != 1 {
			words[i] += fmt.Sprintf("*%d", r.count)
		}
	}
	return strings.Join(words, " ")
}

func (j *job) manifest(names map[string]bool) manifest {
	app := unique(names, namespace, name(fmt.Sprintf("%s-%s-%s", j.class, j.shape, offset(j.work.Round(time.Second)))))
	return manifest{
		"apiVersion": "batch/v1", "kind": "Job",
		"metadata": manifest{"name": app, "namespace": namespace, "annotations": manifest{
			"spotter.dev/duration": offset(j.work), "spotter.dev/releases": releaseText(j.releases),
		}},
		"spec": manifest{"parallelism": 1, "completions": 1, "backoffLimit": 100, "template": j.pod(app, j.class, "Never")},
	}
}

// manifest returns x as it was recorded, with what happened to it as
// annotations.
//
// Where a workload of another kind has its name, it gets one of its own.
func (x *object) manifest(names map[string]bool) (manifest, error) {
	pod, err := plain(&x.pod)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", x.id(), err)
	}
	annotations := manifest{}
	spec := manifest{"template": pod}
	api := "apps/v1"
	switch x.kind {
	case "Job":
		api = "batch/v1"
		annotations["spotter.dev/duration"] = offset(x.work)
		annotations["spotter.dev/releases"] = releaseText(x.releases)
		if x.parallelism != nil {
			spec["parallelism"] = *x.parallelism
		}
		if x.completions != nil {
			spec["completions"] = *x.completions
		}
	case "DaemonSet":
	default:
		addSchedule(annotations, x.changes)
		spec["replicas"] = x.changes[0].pods
	}
	if x.selector != nil {
		if spec["selector"], err = plain(x.selector); err != nil {
			return nil, fmt.Errorf("%s: %w", x.id(), err)
		}
	}
	var claims []any
	for i := range x.claims {
		claim, err := plain(manifest{"metadata": manifest{"name": x.claims[i].Name}, "spec": &x.claims[i].Spec})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", x.id(), err)
		}
		claims = append(claims, claim)
	}
	if claims != nil {
		spec["volumeClaimTemplates"] = claims
	}
	meta := manifest{"name": unique(names, x.namespace, x.name), "namespace": x.namespace}
	if len(annotations) > 0 {
		meta["annotations"] = annotations
	}
	return manifest{"apiVersion": api, "kind": x.kind, "metadata": meta, "spec": spec}, nil
}

// text writes the head and the manifests as YAML. Keys are in order.
func text(head []string, all []manifest) ([]byte, error) {
	var b bytes.Buffer
	for _, paragraph := range head {
		comment(&b, paragraph)
	}
	for i, m := range all {
		if i > 0 {
			b.WriteString("---\n")
		}
		e := yaml.NewEncoder(&b)
		e.SetIndent(2)
		if err := e.Encode(m); err != nil {
			return nil, fmt.Errorf("writing %v: %w", m["kind"], err)
		}
		if err := e.Close(); err != nil {
			return nil, fmt.Errorf("writing %v: %w", m["kind"], err)
		}
	}
	return b.Bytes(), nil
}

// columnsMax is how long a line of a comment is at most.
const columnsMax = 118

// comment writes a paragraph as lines of a comment. The lines of a paragraph that starts
// with a dash are indented under it.
func comment(b *bytes.Buffer, paragraph string) {
	indent := ""
	if strings.HasPrefix(paragraph, "- ") {
		indent = "  "
	}
	line := "#"
	for _, w := range strings.Fields(paragraph) {
		if len(line)+1+len(w) > columnsMax {
			fmt.Fprintln(b, line)
			line = "#" + indent
		}
		line += " " + w
	}
	fmt.Fprintln(b, line)
}

// offset writes a duration as a person would: 26h30m and not 26h30m0s.
func offset(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// days writes a duration in days where it is whole ones.
func days(d time.Duration) string {
	switch {
	case d == day:
		return "a day"
	case d%day == 0:
		return fmt.Sprintf("%d days", d/day)
	}
	return offset(d)
}
