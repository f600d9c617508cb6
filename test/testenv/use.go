package testenv

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
)

// UseVariable is the environment variable that names a folder. Each test that has a cluster writes
// to it what Spotter was allowed to do there and what it did, as [UseReport]. Each test has one
// file, which a new run of the test replaces.
//
// A test whose result go test has cached does not run. Each test therefore looks at the file
// [UseBegun] of the folder: where it is new, no cached result is valid and all tests run.
const UseVariable = "SPOTTER_RIGHTS_USED"

// UseBegun is the file that is made with the folder.
const UseBegun = "begun"

// A UseReport is what Spotter did in a test.
type UseReport struct {
	// Package is the folder below that of the module, and Test the name.
	Package, Test string
	Users         []UserUse
}

// A UserUse is what a user did while it was granted the same.
type UserUse struct {
	User   string
	Grants []Grant
	Uses   []Use
}

// A Grant is a rule that a user has.
type Grant struct {
	// Namespace is where the rule holds; empty is everywhere.
	Namespace string `json:",omitempty"`
	Rule      rbacv1.PolicyRule
}

// A Use is something that a user was let do.
type Use struct {
	Verb, Group string

	// Resource is with its subresource, as "pods/eviction".
	Resource string

	// Name is that of the object where a rule of the user names it.
	Name string `json:",omitempty"`

	// Away says that the object is in a namespace in which the user is granted nothing
	// of its own, and Home that it is in one in which it is.
	Away, Home bool `json:",omitempty"`
}

// String returns the use in words, as "get leases.coordination.k8s.io".
func (u Use) String() string {
	return strings.TrimSpace(fmt.Sprintf("%s %s.%s %s", u.Verb, u.Resource, u.Group, u.Name))
}

// collected reports whether what a user does is collected: users named spotter, or
// spotter- and more, are parts of Spotter, as are service accounts of these names, which
// are those of its chart.
func collected(user string) bool {
	if account, ok := strings.CutPrefix(user, "system:serviceaccount:"); ok {
		_, user, _ = strings.Cut(account, ":")
	}
	return user == "spotter" || strings.HasPrefix(user, "spotter-")
}

// A did is a use by a user while it was granted what is numbered.
type did struct {
	user    string
	granted int
	use     Use
}

// A collection reads an audit log as it grows.
type collection struct {
	mu   sync.Mutex
	at   Mark
	last map[did]Mark // where it stands last

	// roles and bindings are those of role-based access control, by the kind, the
	// namespace and the name.
	roles    map[string][]rbacv1.PolicyRule
	bindings map[string]rbacv1.RoleBinding

	granted []string       // what users were granted, as JSON
	now     map[string]int // by user, into granted
}

// collect has the test leave what is done in it.
func (e *Env) collect(t testing.TB) {
	dir := os.Getenv(UseVariable)
	if dir == "" {
		return
	}
	t.Helper()
	if _, err := os.Stat(filepath.Join(dir, UseBegun)); err != nil {
		t.Fatalf("testenv: %s: %v", UseVariable, err)
	}
	from, since := place(t), e.Mark()
	t.Cleanup(func() {
		use := UseReport{Package: from, Test: t.Name()}
		if err := e.uses.read(e.auditLog()); err != nil {
			t.Errorf("testenv: %v", err)
			return
		}
		use.Users = e.uses.since(since)
		text, err := json.MarshalIndent(use, "", "\t")
		if err == nil {
			name := strings.NewReplacer("/", ".", " ", "_").Replace(use.Package + "." + use.Test)
			err = os.WriteFile(filepath.Join(dir, name+".json"), append(text, '\n'), 0o644)
		}
		if err != nil {
			t.Errorf("testenv: %v", err)
		}
	})
}

// place returns the folder of the package that is tested, below that of its module.
func place(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatalf("testenv: %v", err)
	}
	for top := dir; top != filepath.Dir(top); top = filepath.Dir(top) {
		if _, err := os.Stat(filepath.Join(top, "go.mod")); err == nil {
			rel, err := filepath.Rel(top, dir)
			if err != nil {
				t.Fatalf("testenv: %v", err)
			}
			return filepath.ToSlash(rel)
		}
	}
	t.Fatalf("testenv: %s is in no module", dir)
	return ""
}

// read reads on to the end of the log.
func (c *collection) read(log string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last == nil {
		c.last, c.roles, c.bindings = map[did]Mark{}, map[string][]rbacv1.PolicyRule{}, map[string]rbacv1.RoleBinding{}
	}
	f, err := os.Open(log)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Seek(int64(c.at), io.SeekStart); err != nil {
		return err
	}
	for r := bufio.NewReaderSize(f, 1<<20); ; {
		line, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = c.line(line)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", log, err)
		}
		c.at += Mark(len(line))
	}
}

// line reads a request: one of the users', or one that changes what they are granted.
func (c *collection) line(line []byte) error {
	ours, rules := bytes.Contains(line, []byte("spotter")), bytes.Contains(line,
		[]byte(`"apiGroup":"rbac.authorization.k8s.io"`))
	if !ours && !rules {
		return nil
	}
	x, err := parseAudit(line)
	if err != nil {
		return err
	}
	if x.Group == rbacv1.GroupName && x.Writes() && x.Code < 300 {
		if len(x.Response) == 0 {
			return nil // what the server grants its own parts is logged without content
		}
		return c.change(&x)
	}
	if x.Resource == "" || !collected(x.User) || !x.Allowed {
		return nil
	}
	n, ok := c.now[x.User]
	if !ok {
		n = c.grant(x.User)
	}
	u := c.use(&x, n)
	c.last[did{x.User, n, u}] = c.at
	if u.Verb == "patch" && x.Code == http.StatusCreated { // applied where the object did not exist: access control checks both verbs
		u.Verb = "create"
		c.last[did{x.User, n, u}] = c.at
	}
	return nil
}

// change notes a role or a binding.
func (c *collection) change(x *AuditEvent) error {
	key := x.Namespace + "/" + x.Name
	c.now = nil
	switch x.Resource {
	case "roles", "clusterroles":
		var role rbacv1.Role
		if x.Verb == "delete" || x.Verb == "deletecollection" {
			delete(c.roles, key)
			return nil
		}
		if err := json.Unmarshal(x.Response, &role); err != nil {
			return err
		}
		c.roles[x.Namespace+"/"+role.Name] = role.Rules
	case "rolebindings", "clusterrolebindings":
		var b rbacv1.RoleBinding
		if x.Verb == "delete" || x.Verb == "deletecollection" {
			delete(c.bindings, key)
			return nil
		}
		if err := json.Unmarshal(x.Response, &b); err != nil {
			return err
		}
		c.bindings[x.Namespace+"/"+b.Name] = b
	}
	return nil
}

// grant returns the number of what a user is granted now.
func (c *collection) grant(user string) int {
	var all []Grant
	for _, b := range c.bindings {
		if !slices.ContainsFunc(b.Subjects, func(s rbacv1.Subject) bool {
			return s.Kind == rbacv1.UserKind && s.Name == user ||
				s.Kind == rbacv1.ServiceAccountKind && "system:serviceaccount:"+s.Namespace+":"+s.Name == user
		}) {
			continue
		}
		from := "/" + b.RoleRef.Name
		if b.RoleRef.Kind == "Role" {
			from = b.Namespace + from
		}
		for _, r := range c.roles[from] {
			if len(r.Resources) > 0 {
				all = append(all, Grant{Namespace: b.Namespace, Rule: r})
			}
		}
	}
	slices.SortFunc(all, func(a, b Grant) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), slices.Compare(a.Rule.APIGroups, b.Rule.APIGroups),
			slices.Compare(a.Rule.Resources, b.Rule.Resources),
			slices.Compare(a.Rule.ResourceNames, b.Rule.ResourceNames), slices.Compare(a.Rule.Verbs, b.Rule.Verbs))
	})
	text, err := json.Marshal(all)
	if err != nil {
		panic(fmt.Sprintf("testenv: rules of plain strings: %v", err))
	}
	n := slices.Index(c.granted, string(text))
	if n < 0 {
		n, c.granted = len(c.granted), append(c.granted, string(text))
	}
	if c.now == nil {
		c.now = map[string]int{}
	}
	c.now[user] = n
	return n
}

// grants returns what has a number.
func (c *collection) grants(n int) []Grant {
	var all []Grant
	if err := json.Unmarshal([]byte(c.granted[n]), &all); err != nil {
		panic(fmt.Sprintf("testenv: rules that were written here: %v", err))
	}
	return all
}

// use returns what a request was, of a user who is granted what is numbered.
func (c *collection) use(x *AuditEvent, n int) Use {
	u := Use{Verb: x.Verb, Group: x.Group, Resource: x.Resource}
	if x.Subresource != "" {
		u.Resource += "/" + x.Subresource
	}
	bound := false
	for _, g := range c.grants(n) {
		if g.Namespace != "" {
			bound = true
			u.Home = u.Home || g.Namespace == x.Namespace
		}
		if x.Name != "" && slices.Contains(g.Rule.ResourceNames, x.Name) && slices.Contains(g.Rule.APIGroups, u.Group) &&
			slices.Contains(g.Rule.Resources, u.Resource) {
			u.Name = x.Name
		}
	}
	u.Away = bound && !u.Home && x.Namespace != ""
	return u
}

// since returns what was done behind a place in the log.
func (c *collection) since(mark Mark) []UserUse {
	c.mu.Lock()
	defer c.mu.Unlock()
	type who struct {
		user    string
		granted int
	}
	all := map[who][]Use{}
	for d, at := range c.last {
		if at >= mark {
			all[who{d.user, d.granted}] = append(all[who{d.user, d.granted}], d.use)
		}
	}
	users := []UserUse{}
	for w, uses := range all {
		slices.SortFunc(uses, func(a, b Use) int { return cmp.Compare(fmt.Sprintf("%+v", a), fmt.Sprintf("%+v", b)) })
		users = append(users, UserUse{User: w.user, Grants: c.grants(w.granted), Uses: uses})
	}
	slices.SortFunc(users, func(a, b UserUse) int {
		return cmp.Or(cmp.Compare(a.User, b.User), cmp.Compare(len(a.Grants), len(b.Grants)),
			cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)))
	})
	return users
}
