package scenarios

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"

	"github.com/spotter-dev/spotter/scenarios/karpenter"
)

// obtainV1 ends an error about an object of an old version of Karpenter's API.
const obtainV1 = "; a cluster of Karpenter 1.0 prints the objects as v1 with " +
	"`kubectl get nodepools.v1.karpenter.sh,ec2nodeclasses.v1.karpenter.k8s.aws -o yaml`, " +
	"and https://karpenter.sh/v1.0/upgrading/v1-migration/ says how to write them"

// oldForms maps the apiVersion and kind of old Karpenter objects to their conversion to v1. The
// conversions follow those of Karpenter.
var oldForms = map[[2]string]func(*conversion){
	{"karpenter.sh/v1beta1", "NodePool"}:              (*conversion).betaNodePool,
	{"karpenter.k8s.aws/v1beta1", "EC2NodeClass"}:     func(c *conversion) { c.becomeNodeClass(c.doc.node) },
	{"karpenter.sh/v1alpha5", "Provisioner"}:          (*conversion).provisioner,
	{"karpenter.k8s.aws/v1alpha1", "AWSNodeTemplate"}: (*conversion).nodeTemplate,
}

// oldGroups are the API groups in which an unknown version may be an old one.
var oldGroups = []string{"karpenter.sh", "karpenter.k8s.aws"}

// newVersion returns a hint on how to obtain v1 objects if apiVersion is another version of
// Karpenter's API, or else "".
func newVersion(apiVersion string) string {
	if group, _, _ := strings.Cut(apiVersion, "/"); slices.Contains(oldGroups, group) {
		return obtainV1
	}
	return ""
}

// A conversion rewrites one object to v1. Values keep their line numbers, and errors refer to
// fields of the old object.
type conversion struct {
	doc  document
	errs []error

	// kubelet are the kubelet settings of a NodePool, which are part of the EC2NodeClass in v1.
	// class is an EC2NodeClass contained in a Provisioner. added are the requirements that v1alpha5
	// adds by default.
	kubelet, class *yaml.Node
	added          []string
}

// convertOld converts the objects of old versions of Karpenter's API. It returns all objects, and
// notes for the user about the conversion.
func convertOld(docs []document) (out []document, notes []string, err error) {
	var errs []error
	var converted []string
	var kubelets []kubeletOf
	renamed := false
	for _, d := range docs {
		apiVersion, kind := d.scalar("apiVersion"), d.kind()
		convert := oldForms[[2]string{apiVersion, kind}]
		if convert == nil {
			out = append(out, d)
			continue
		}
		c := &conversion{doc: document{file: d.file, node: copied(d.node)}}
		convert(c)
		errs = append(errs, c.errs...)
		name := d.scalar("metadata", "name")
		out = append(out, c.doc)
		if c.kubelet != nil {
			kubelets = append(kubelets, kubeletOf{len(out) - 1, c.kubelet})
		}
		if c.class != nil {
			out = append(out, document{file: d.file, node: c.class})
		}
		if c.added != nil {
			notes = append(notes, fmt.Sprintf("%s %s: %s adds the requirements %s", kind, name, apiVersion,
				strings.Join(c.added, ", ")))
		}
		converted = append(converted, fmt.Sprintf("%s %s (%s)", kind, name, apiVersion))
		renamed = renamed || kind == "Provisioner"
	}
	if len(converted) == 0 {
		return docs, nil, nil
	}
	notes = slices.Insert(notes, 0, "converted to karpenter.sh/v1: "+strings.Join(converted, ", "))
	if renamed {
		rename(out)
	}
	out, more, classErrs := placeKubelets(out, kubelets)
	return out, append(notes, more...), errors.Join(append(errs, classErrs...)...)
}

// ConvertOld converts objects of old versions of Karpenter's API to v1, as when a scenario is read,
// and returns all objects. The notes are for the user; the first one lists the converted objects.
func ConvertOld(objects []map[string]any) (out []map[string]any, notes []string, err error) {
	docs := make([]document, len(objects))
	for i, o := range objects {
		docs[i] = document{file: "cluster", node: &yaml.Node{}}
		if err := docs[i].node.Encode(o); err != nil {
			return nil, nil, fmt.Errorf("reading an object of the cluster: %w", err)
		}
	}
	docs, notes, err = convertOld(docs)
	if err != nil {
		return nil, nil, err
	}
	for _, d := range docs {
		var o map[string]any
		if err := d.node.Decode(&o); err != nil {
			return nil, nil, fmt.Errorf("reading a converted object: %w", err)
		}
		out = append(out, o)
	}
	return out, notes, nil
}

// fail adds an error about a field of the old object.
func (c *conversion) fail(n *yaml.Node, path, format string, args ...any) {
	c.errs = append(c.errs, &FieldError{c.doc.file, n.Line, path, fmt.Sprintf(format, args...) + obtainV1})
}

// become sets the apiVersion and kind of the object.
func (c *conversion) become(apiVersion, kind string) {
	put(c.doc.node, text(c.doc.node, apiVersion), "apiVersion")
	put(c.doc.node, text(c.doc.node, kind), "kind")
}

// move moves a value to a field that does not exist in the old version.
func (c *conversion) move(from string, to ...string) *yaml.Node {
	v := take(c.doc.node, strings.Split(from, ".")...)
	if old := c.doc.at(to); old != nil {
		c.fail(old, joinPath(to), "%s has no such field", c.doc.scalar("apiVersion"))
	}
	if v != nil {
		put(c.doc.node, v, to...)
	}
	return v
}

func (c *conversion) betaNodePool() {
	template := []string{"spec", "template", "spec"}
	at := func(field ...string) []string { return append(slices.Clip(template), field...) }
	c.move("spec.disruption.expireAfter", at("expireAfter")...)
	c.defaultTo("720h", at("expireAfter")...)
	c.defaultTo("0s", "spec", "disruption", "consolidateAfter")
	take(c.doc.node, at("resources")...) // Karpenter sets it for each node
	c.kubelet = take(c.doc.node, at("kubelet")...)
	c.classRef(at("nodeClassRef"))
	if p := c.doc.at([]string{"spec", "disruption", "consolidationPolicy"}); p != nil && p.Value == "WhenUnderutilized" {
		p.Value = string(karpenter.WhenEmptyOrUnderutilized)
	}
	if c.doc.at([]string{"spec", "replicas"}) != nil {
		c.fail(c.doc.at([]string{"spec", "replicas"}), "spec.replicas", "%s has no such field", c.doc.scalar("apiVersion"))
	}
	c.become("karpenter.sh/v1", "NodePool")
}

// defaultTo sets a field if the object does not state it.
func (c *conversion) defaultTo(value string, path ...string) {
	if c.doc.at(path) == nil {
		put(c.doc.node, text(c.doc.node, value), path...)
	}
}

// classRef sets the group and kind of a node class reference, which v1beta1 leaves to defaults.
func (c *conversion) classRef(path []string) {
	ref := c.doc.at(path)
	if ref == nil || ref.Kind != yaml.MappingNode {
		return // an error is reported when the reference is read
	}
	group := "karpenter.k8s.aws"
	if v := take(ref, "apiVersion"); v != nil {
		group, _, _ = strings.Cut(v.Value, "/")
	}
	put(ref, text(ref, group), "group")
	if child(ref, "kind") == nil {
		put(ref, text(ref, "EC2NodeClass"), "kind")
	}
}

// ubuntuRoot is the root volume of Ubuntu, which is a custom image in v1.
const ubuntuRoot = "/dev/sda1"

// becomeNodeClass converts n to a v1 EC2NodeClass.
func (c *conversion) becomeNodeClass(n *yaml.Node) {
	put(n, text(n, "karpenter.k8s.aws/v1"), "apiVersion")
	put(n, text(n, "EC2NodeClass"), "kind")
	d := document{file: c.doc.file, node: n}
	if k := d.at([]string{"spec", "kubelet"}); k != nil {
		c.fail(k, "spec.kubelet", "a node class of this version has no such field")
	}
	family := d.at([]string{"spec", "amiFamily"})
	if family == nil || family.Value != "Ubuntu" {
		return
	}
	family.Value = "Custom"
	devices := take(n, "spec", "blockDeviceMappings")
	if devices == nil || devices.Kind != yaml.SequenceNode {
		return
	}
	for _, b := range devices.Content {
		if name := child(b, "deviceName"); name != nil && name.Value == ubuntuRoot {
			put(n, &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Line: devices.Line, Content: []*yaml.Node{b}}, "spec",
				"blockDeviceMappings")
		}
	}
}

// nodeTemplate converts an AWSNodeTemplate.
func (c *conversion) nodeTemplate() {
	c.convertTemplate(c.doc.node, "spec")
	c.becomeNodeClass(c.doc.node)
}

// The fields of an AWSNodeTemplate that v1 also has, and the selectors by tags that are lists of
// terms in v1.
var (
	templateFields = []string{"amiFamily", "instanceProfile", "metadataOptions", "blockDeviceMappings", "userData",
		"tags", "context", "detailedMonitoring"}
	templateSelectors = []string{"subnetSelector", "securityGroupSelector", "amiSelector"}
)

// convertTemplate rewrites the spec of an AWSNodeTemplate in n. Path is its path in the file.
func (c *conversion) convertTemplate(n *yaml.Node, path string) {
	spec := child(n, "spec")
	if spec == nil || spec.Kind != yaml.MappingNode {
		return
	}
	take(spec, "apiVersion") // in the provider field of a Provisioner
	take(spec, "kind")
	for _, field := range templateSelectors {
		if tags := take(spec, field); tags != nil {
			term := mapping(tags)
			put(term, tags, "tags")
			put(spec, &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Line: tags.Line, Content: []*yaml.Node{term}},
				field+"Terms")
		}
	}
	for i := 0; i+1 < len(spec.Content); i += 2 {
		key := spec.Content[i]
		switch field := strings.TrimSuffix(key.Value, "Terms"); {
		case slices.Contains(templateFields, key.Value), field != key.Value && slices.Contains(templateSelectors, field):
		case key.Value == "launchTemplate", key.Value == "launchTemplateName":
			c.fail(key, path+"."+key.Value, "%s: what a launch template states of nodes is not known", got(spec.Content[i+1]))
		default:
			c.fail(key, path+"."+key.Value, "unknown key")
		}
	}
	if child(spec, "amiFamily") == nil {
		put(spec, text(spec, "AL2"), "amiFamily")
	}
}

// A defaultRequirement is a requirement that v1alpha5 adds unless the object has a requirement on
// one of the labels in unless.
type defaultRequirement struct {
	unless []string
	key    string
	op     corev1.NodeSelectorOperator
	values []string
}

var typeKeys = []string{
	corev1.LabelInstanceTypeStable, prefixAWS + "instance-family", prefixAWS + "instance-category", prefixAWS +
		"instance-generation",
}

var provisionerDefaults = []defaultRequirement{
	{[]string{corev1.LabelOSStable}, corev1.LabelOSStable, corev1.NodeSelectorOpIn, []string{"linux"}},
	{[]string{corev1.LabelArchStable}, corev1.LabelArchStable, corev1.NodeSelectorOpIn, []string{"amd64"}},
	{[]string{karpenter.LabelCapacityType}, karpenter.LabelCapacityType, corev1.NodeSelectorOpIn, []string{"on-demand"}},
	{typeKeys, prefixAWS + "instance-category", corev1.NodeSelectorOpIn, []string{"c", "m", "r"}},
	{typeKeys, prefixAWS + "instance-generation", corev1.NodeSelectorOpGt, []string{"2"}},
}

// provisioner converts a Provisioner.
func (c *conversion) provisioner() {
	old := take(c.doc.node, "spec")
	if old == nil || old.Kind != yaml.MappingNode {
		c.fail(c.doc.node, "spec", "must be set")
		return
	}
	set := func(v *yaml.Node, path ...string) {
		if v != nil {
			put(c.doc.node, v, append([]string{"spec"}, path...)...)
		}
	}
	set(take(old, "labels"), "template", "metadata", "labels")
	set(take(old, "annotations"), "template", "metadata", "annotations")
	set(take(old, "taints"), "template", "spec", "taints")
	set(take(old, "startupTaints"), "template", "spec", "startupTaints")
	set(c.provisionerRequirements(take(old, "requirements"), old), "template", "spec", "requirements")
	set(c.provider(old), "template", "spec", "nodeClassRef")
	set(take(old, "weight"), "weight")
	set(take(old, "limits", "resources"), "limits")
	c.lifetimes(old, set)
	if c.kubelet = take(old, "kubeletConfiguration"); c.kubelet != nil {
		take(c.kubelet, "containerRuntime") // both container runtimes leave the same resources for pods
	}
	for i := 0; i+1 < len(old.Content); i += 2 {
		key := old.Content[i]
		if v := resolve(old.Content[i+1]); v.Kind != yaml.MappingNode || len(v.Content) > 0 {
			c.fail(key, "spec."+key.Value, "unknown key")
		}
	}
	c.become("karpenter.sh/v1", "NodePool")
}

// provisionerRequirements adds the default requirements of v1alpha5 to a list, which may be nil.
func (c *conversion) provisionerRequirements(list, at *yaml.Node) *yaml.Node {
	if list == nil || list.Kind != yaml.SequenceNode {
		list = &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Line: at.Line}
	}
	stated := map[string]bool{}
	for _, q := range list.Content {
		if key := child(q, "key"); key != nil {
			stated[karpenter.Today(key.Value)] = true
		}
	}
	for _, d := range provisionerDefaults {
		if slices.ContainsFunc(d.unless, func(key string) bool { return stated[key] }) {
			continue
		}
		q := &yaml.Node{}
		// Encoding a map of strings never fails.
		_ = q.Encode(map[string]any{"key": d.key, "operator": string(d.op), "values": d.values})
		q.Line = list.Line
		list.Content = append(list.Content, q)
		c.added = append(c.added, fmt.Sprintf("%s %s %s", d.key, d.op, strings.Join(d.values, ",")))
	}
	return list
}

// provider returns the node class reference of a Provisioner. An inline provider becomes an
// EC2NodeClass with the name of the Provisioner.
func (c *conversion) provider(old *yaml.Node) *yaml.Node {
	ref, within := take(old, "providerRef"), take(old, "provider")
	name := ""
	switch {
	case ref != nil && within != nil:
		c.fail(within, "spec.provider", "must not be set together with providerRef")
		return nil
	case ref != nil:
		if kind := child(ref, "kind"); kind != nil && kind.Value != "AWSNodeTemplate" {
			c.fail(kind, "spec.providerRef.kind", "%q is not AWSNodeTemplate", kind.Value)
		}
		if n := child(ref, "name"); n != nil {
			name = n.Value
		}
	case within != nil:
		ref, name = within, c.doc.scalar("metadata", "name")
		c.class = mapping(within)
		put(c.class, text(within, name), "metadata", "name")
		put(c.class, within, "spec")
		c.convertTemplate(c.class, "spec.provider")
		c.becomeNodeClass(c.class)
	default:
		c.fail(c.doc.node, "spec.providerRef", "must be set")
		return nil
	}
	out := mapping(ref)
	put(out, text(ref, "karpenter.k8s.aws"), "group")
	put(out, text(ref, "EC2NodeClass"), "kind")
	put(out, text(ref, name), "name")
	return out
}

// lifetimes converts the settings for the lifetime of a Provisioner's nodes, which is unlimited by
// default.
func (c *conversion) lifetimes(old *yaml.Node, set func(v *yaml.Node, path ...string)) {
	seconds := func(field string) *yaml.Node {
		v := take(old, field)
		if v == nil || v.Tag == "!!null" {
			return text(old, karpenter.Never)
		}
		if v.Tag != "!!int" {
			c.fail(v, "spec."+field, "want an integer, got %s", got(v))
		}
		return text(v, v.Value+"s")
	}
	set(seconds("ttlSecondsUntilExpired"), "template", "spec", "expireAfter")
	enabled := take(old, "consolidation", "enabled")
	empty := seconds("ttlSecondsAfterEmpty")
	switch {
	case enabled != nil && enabled.Tag != "!!bool":
		c.fail(enabled, "spec.consolidation.enabled", "want true or false, got %s", got(enabled))
	case enabled == nil || strings.EqualFold(enabled.Value, "false"):
		set(text(empty, string(karpenter.WhenEmpty)), "disruption", "consolidationPolicy")
		set(empty, "disruption", "consolidateAfter")
	case empty.Value != karpenter.Never:
		c.fail(empty, "spec.ttlSecondsAfterEmpty", "must not be set together with consolidation")
	default:
		set(text(enabled, string(karpenter.WhenEmptyOrUnderutilized)), "disruption", "consolidationPolicy")
		set(text(enabled, "0s"), "disruption", "consolidateAfter")
	}
}

// A kubeletOf contains the kubelet settings of a converted NodePool, which is the document at index
// pool.
type kubeletOf struct {
	pool int
	node *yaml.Node
}

// placeKubelets moves kubelet settings from NodePools to their EC2NodeClasses. If the NodePools of
// a class have different settings, the class is copied for each of them.
func placeKubelets(docs []document, kubelets []kubeletOf) (out []document, notes []string, errs []error) {
	stated := map[string]map[string]bool{} // by class, the different settings of its NodePools
	settings := map[int]string{}
	for _, k := range kubelets {
		settings[k.pool] = rendered(k.node)
	}
	placed := map[string]bool{}
	refAt := []string{"spec", "template", "spec", "nodeClassRef"}
	for i := range docs {
		if docs[i].kind() != "NodePool" {
			continue
		}
		name := docs[i].scalar(append(slices.Clip(refAt), "name")...)
		if stated[name] == nil {
			stated[name] = map[string]bool{}
		}
		stated[name][settings[i]] = true
	}
	for _, k := range kubelets {
		ref := docs[k.pool].at(refAt)
		if ref == nil || child(ref, "kind") == nil || child(ref, "name") == nil {
			continue // an error is reported when the reference is read
		}
		name := child(ref, "name")
		at := slices.IndexFunc(docs, func(d document) bool {
			return d.kind() == child(ref, "kind").Value && d.scalar("metadata", "name") == name.Value
		})
		if at < 0 {
			continue // an error is reported when classes are resolved
		}
		if placed[name.Value] {
			continue
		}
		if docs[at].kind() != "EC2NodeClass" || docs[at].at([]string{"spec", "kubelet"}) != nil {
			errs = append(errs, &FieldError{docs[at].file, k.node.Line, "spec.template.spec.kubelet",
				fmt.Sprintf("%s %s cannot take the settings of the kubelet%s", docs[at].kind(), name.Value, obtainV1)})
			continue
		}
		if len(stated[name.Value]) == 1 {
			put(docs[at].node, k.node, "spec", "kubelet")
			placed[name.Value] = true
			continue
		}
		pool := docs[k.pool].scalar("metadata", "name")
		class := document{file: docs[at].file, node: copied(docs[at].node)}
		copyName := name.Value + "-" + pool
		put(class.node, text(name, copyName), "metadata", "name")
		put(class.node, k.node, "spec", "kubelet")
		put(ref, text(name, copyName), "name")
		docs = append(docs, class)
		notes = append(notes,
			fmt.Sprintf("NodePool %s is of EC2NodeClass %s, a copy of %s with the NodePool's settings of the kubelet", pool,
				copyName, name.Value))
	}
	return docs, notes, errs
}

// renamedKeys maps the labels and annotations of v1alpha5 to their names in v1.
var renamedKeys = map[string]string{
	"karpenter.sh/provisioner-name": karpenter.LabelNodePool,
	"karpenter.sh/do-not-evict":     karpenter.DoNotDisrupt,
}

// rename replaces labels and annotations of v1alpha5 by their names in v1, in all objects.
func rename(docs []document) {
	var walk func(n *yaml.Node)
	walk = func(n *yaml.Node) {
		if today, old := renamedKeys[n.Value]; old && n.Kind == yaml.ScalarNode {
			n.Value = today
		}
		for _, c := range n.Content {
			walk(c)
		}
	}
	for i := range docs {
		docs[i].node = copied(docs[i].node)
		walk(docs[i].node)
	}
}

// copied returns a deep copy of n with aliases resolved, so that no value occurs twice.
func copied(n *yaml.Node) *yaml.Node {
	x := *resolve(n)
	x.Content = make([]*yaml.Node, len(x.Content))
	for i, c := range resolve(n).Content {
		x.Content[i] = copied(c)
	}
	return &x
}

// rendered returns a text that is equal for equal values.
func rendered(n *yaml.Node) string {
	var v any
	if n.Decode(&v) != nil {
		return ""
	}
	m, ok := v.(map[string]any)
	if !ok {
		return fmt.Sprint(v)
	}
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(m)) {
		fmt.Fprintf(&b, "%s=%v;", key, m[key]) // maps are printed in key order
	}
	return b.String()
}

// take removes the value at path from n and returns it, or nil.
func take(n *yaml.Node, path ...string) *yaml.Node {
	n = resolve(n)
	if len(path) > 1 {
		if next := child(n, path[0]); next != nil {
			return take(next, path[1:]...)
		}
		return nil
	}
	if n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == path[0] {
			v := resolve(n.Content[i+1])
			n.Content = slices.Delete(n.Content, i, i+2)
			return v
		}
	}
	return nil
}

// put sets the value at path in n, and creates missing mappings.
func put(n, v *yaml.Node, path ...string) {
	n = resolve(n)
	next := child(n, path[0])
	switch {
	case len(path) > 1 && next != nil:
		put(next, v, path[1:]...)
		return
	case len(path) > 1:
		inner := mapping(v)
		put(inner, v, path[1:]...)
		v = inner
	case next != nil:
		take(n, path[0])
	}
	if n.Kind == yaml.MappingNode {
		n.Content = append(n.Content, text(v, path[0]), v)
	}
}

// text returns a string node on the line of at. mapping returns an empty mapping node on that line.
func text(at *yaml.Node, s string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s, Line: at.Line}
}

func mapping(at *yaml.Node) *yaml.Node {
	return &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: at.Line}
}
