package scenarios

import (
	"cmp"
	"maps"
	"slices"

	"go.yaml.in/yaml/v3"
)

// kind returns the kind of the object.
func (d *document) kind() string { return cmp.Or(d.is, d.scalar("kind"), d.listed) }

// version returns the apiVersion of the object.
func (d *document) version() string { return cmp.Or(d.scalar("apiVersion"), d.listedVersion) }

// described returns the objects in a response of AWS, which states no kind, or nil for another
// document. A response contains only the keys in describedKinds and answerKeys.
func (d *document) described() (docs []document, err error) {
	if d.kind() != "" {
		return nil, nil
	}
	for _, key := range slices.Sorted(maps.Keys(describedKinds)) {
		switch n := d.at([]string{key}); {
		case n == nil:
		case n.Kind == yaml.SequenceNode:
			for _, item := range n.Content {
				docs = append(docs, document{file: d.file, node: resolve(item), is: key})
			}
		default:
			docs = append(docs, document{file: d.file, node: n, is: key})
		}
	}
	if docs == nil {
		return nil, nil
	}
	for i := 0; i < len(d.node.Content); i += 2 {
		key := d.node.Content[i].Value
		if x, known := answerKeys[key]; !known || x.use == denied {
			return nil, d.problem([]string{key}, "%s", cmp.Or(x.why, "unknown key of an answer of AWS"))
		}
	}
	return docs, nil
}

// managedBy maps the names of Auto Scaling groups to the managed node groups that created them, and
// returns the set of Auto Scaling groups that are described themselves. The node group of such an
// Auto Scaling group does not become a second pool.
func managedBy(objects []object) (byGroup map[string]*eksGroup, groups map[string]bool) {
	byGroup, groups = map[string]*eksGroup{}, map[string]bool{}
	for i := range objects {
		switch v := objects[i].value.(type) {
		case *eksGroup:
			for _, g := range v.Resources.Groups {
				byGroup[g.Name] = v
			}
		case *awsGroup:
			groups[v.Name] = true
		}
	}
	return byGroup, groups
}
