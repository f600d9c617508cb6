package fake

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// managed is the protocol of EKS for managed node groups: paths and JSON.
type managed struct {
	*Server
	path  string
	query url.Values
}

// action names the action that a path requests; "eks:?" for one that is not served.
func (p *managed) action(method string) string {
	switch {
	case strings.HasPrefix(p.path, "/tags/") && method == http.MethodPost:
		return "eks:TagResource"
	case strings.HasPrefix(p.path, "/tags/") && method == http.MethodDelete:
		return "eks:UntagResource"
	case strings.HasSuffix(p.path, "/update-config") && method == http.MethodPost:
		return "eks:UpdateNodegroupConfig"
	case strings.Contains(p.path, "/node-groups/") && method == http.MethodGet:
		return "eks:DescribeNodegroup"
	}
	return "eks:?"
}

// target returns the group of the node group that the path names.
func (p *managed) target() (*held, *apiError) {
	name := strings.TrimSuffix(p.path, "/update-config")
	name = name[strings.LastIndex(name, "/")+1:]
	if arn, ok := strings.CutPrefix(p.path, "/tags/"); ok {
		if parts := strings.Split(arn, "/"); len(parts) > 2 {
			name = parts[2]
		}
	}
	for _, g := range p.groups.byName {
		if g.Nodegroup == name && name != "" {
			return g, nil
		}
	}
	return nil, errorOf("ResourceNotFoundException")
}

func (p *managed) answer(c *Call) (answer, *apiError) {
	g, no := p.target()
	if no != nil {
		return answer{}, no
	}
	if g.status == "UPDATING" && !g.until.After(p.groups.clock) {
		g.status = "ACTIVE"
	}
	switch c.Action {
	case "eks:DescribeNodegroup":
		return jsonAnswer(map[string]any{"nodegroup": p.describe(g)}), nil
	case "eks:UpdateNodegroupConfig":
		return p.update(g, c.Body)
	case "eks:TagResource":
		var in struct {
			Tags map[string]string `json:"tags"`
		}
		if err := json.Unmarshal([]byte(c.Body), &in); err != nil {
			return answer{}, &apiError{http.StatusBadRequest, "InvalidParameterException", err.Error()}
		}
		for k, v := range in.Tags {
			g.ngTags[k] = v
		}
		return jsonAnswer(struct{}{}), nil
	case "eks:UntagResource":
		for _, k := range p.query["tagKeys"] {
			delete(g.ngTags, k)
		}
		return jsonAnswer(struct{}{}), nil
	}
	return answer{}, &apiError{http.StatusNotFound, "UnknownOperationException", "not served"}
}

func (p *managed) describe(g *held) map[string]any {
	capacity := "ON_DEMAND"
	if g.OnDemandPercent == 0 {
		capacity = "SPOT"
	}
	return map[string]any{
		"nodegroupName": g.Nodegroup, "clusterName": g.Cluster, "status": g.status, "capacityType": capacity, "instanceTypes": g.Types,
		"nodegroupArn":  fmt.Sprintf("arn:aws:eks:%s:111122223333:nodegroup/%s/%s/0", p.region, g.Cluster, g.Nodegroup),
		"scalingConfig": map[string]int{"minSize": g.Min, "maxSize": g.Max, "desiredSize": g.Desired},
		"tags":          g.ngTags, "resources": map[string]any{"autoScalingGroups": []any{map[string]string{"name": g.Name}}},
	}
}

// update changes the size of a node group, one update at a time, and the same
// token only once.
func (p *managed) update(g *held, body string) (answer, *apiError) {
	var in struct {
		Token   string `json:"clientRequestToken"`
		Scaling struct {
			Desired *int `json:"desiredSize"`
		} `json:"scalingConfig"`
	}
	if err := json.Unmarshal([]byte(body), &in); err != nil || in.Scaling.Desired == nil {
		return answer{}, &apiError{http.StatusBadRequest, "InvalidParameterException", "desiredSize is expected"}
	}
	out := jsonAnswer(map[string]any{"update": map[string]any{"id": in.Token, "status": "InProgress",
		"type": "ConfigUpdate"}})
	if in.Token != "" && in.Token == g.token {
		return out, nil
	}
	if g.status != "ACTIVE" {
		return answer{}, errorOf("ResourceInUseException")
	}
	if no := g.resize(*in.Scaling.Desired); no != nil {
		return answer{}, &apiError{http.StatusBadRequest, "InvalidParameterException", no.message}
	}
	g.status, g.until, g.token = "UPDATING", p.groups.clock.Add(p.Delays.Update), in.Token
	return out, nil
}

func (p *managed) refuse(no *apiError) answer {
	a := jsonAnswer(map[string]string{"message": no.message})
	a.status, a.fault = no.status, no.code
	return a
}

func jsonAnswer(v any) answer {
	body, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("fake: %v", err)) // only of types of this package
	}
	return answer{status: http.StatusOK, kind: "application/json", body: body}
}
