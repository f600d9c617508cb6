package market

import (
	"slices"
	"strings"

	"github.com/spotter-dev/spotter/policy"
)

// quotas is what is known of the account's quotas.
type quotas struct {
	used []int64 // vCPUs by limit of the configuration

	// spent are the quotas that a launch met, in the order of their names.
	spent []spentQuota
}

// A spentQuota is one that AWS said was used up.
type spentQuota struct {
	quota policy.Quota
	at    policy.Time
}

// A class is a set of instance families that AWS counts against one quota, by the
// letters before their generation (AWS documentation, "Amazon EC2 instance type
// quotas").
type class struct {
	name       string
	categories []string
}

// classes are those of AWS. A family of none of them counts by itself.
var classes = []class{
	{"Standard (A, C, D, H, I, M, R, T, Z)", []string{"a", "c", "d", "h", "i", "im", "is", "m", "r", "t", "z"}},
	{"F", []string{"f"}},
	{"G and VT", []string{"g", "gr", "vt"}},
	{"Inf", []string{"inf"}},
	{"P", []string{"p"}},
	{"Trn", []string{"trn"}},
	{"DL", []string{"dl"}},
	{"HPC", []string{"hpc"}},
	{"High Memory", []string{"u"}},
	{"X", []string{"x"}},
}

// meet notes that a launch in market id was refused for a quota.
func (q *quotas) meet(t *table, id policy.MarketID, at policy.Time) {
	if id == policy.None {
		return
	}
	m := &t.markets[id]
	name, families := counted(t.types, &t.types[m.Type])
	capacity := "On-Demand"
	if m.Capacity == policy.Spot {
		capacity = "Spot"
	}
	s := spentQuota{at: at, quota: policy.Quota{
		Name: "Running " + capacity + " " + name + " instances", Region: m.Region, Capacity: m.Capacity, Families: families,
	}}
	i, found := slices.BinarySearchFunc(q.spent, s, func(a, b spentQuota) int {
		return strings.Compare(a.quota.Name+" "+a.quota.Region, b.quota.Name+" "+b.quota.Region)
	})
	if found {
		s.at = max(s.at, q.spent[i].at)
		q.spent[i] = s
		return
	}
	q.spent = slices.Insert(q.spent, i, s)
}

// counted returns the name of the quota that t counts against and the families of
// the table that do, too.
func counted(types []policy.InstanceType, t *policy.InstanceType) (name string, families []string) {
	i := slices.IndexFunc(classes, func(c class) bool { return slices.Contains(c.categories, t.Category) })
	if t.Provider != "aws" || i < 0 {
		return t.Family, []string{t.Family}
	}
	for k := range types {
		if x := &types[k]; x.Provider == t.Provider && slices.Contains(classes[i].categories, x.Category) {
			families = append(families, x.Family)
		}
	}
	slices.Sort(families)
	return classes[i].name, slices.Compact(families)
}

// count adds up what nodes take of each limit.
func (q *quotas) count(limits []Limit, t *table, nodes []int64) {
	q.used = append(q.used[:0], make([]int64, len(limits))...)
	for i := range t.markets {
		m := &t.markets[i]
		kind := &t.types[m.Type]
		for k := range limits {
			l := &limits[k]
			if l.Region == m.Region && l.Capacity == m.Capacity && (len(l.Families) == 0 ||
				slices.Contains(l.Families, kind.Family)) {
				q.used[k] += nodes[i] * kind.VCPU
			}
		}
	}
}

// fill returns what is left of the limits, and of the quotas that launches met:
// nothing, for some time.
func (q *quotas) fill(c *Config, now policy.Time) []policy.Quota {
	var all []policy.Quota
	for k, l := range c.Limits {
		left := l.VCPU
		if k < len(q.used) {
			left = max(0, left-q.used[k])
		}
		all = append(all, policy.Quota{Name: l.Name, Region: l.Region, Capacity: l.Capacity, Families: l.Families,
			VCPU: left})
	}
	q.spent = slices.DeleteFunc(q.spent, func(s spentQuota) bool { return now.Sub(s.at) >= c.QuotaSpan })
	for i := range q.spent {
		all = append(all, q.spent[i].quota)
	}
	return all
}
