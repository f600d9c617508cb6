// Package testenv starts the real parts of Kubernetes for tests: etcd and
// kube-apiserver with our definitions installed, role-based access control,
// service accounts and an audit log, and by option kube-controller-manager,
// kube-scheduler and kwok, which plays the kubelets.
//
//	func TestCordon(t *testing.T) {
//		env := testenv.Start(t, testenv.Options{ControllerManager: true, Scheduler: true, Kwok: true})
//		ns := env.Namespace(t)
//		user := env.User(t, "spotter", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get", "patch"}})
//		env.AddNode(t, testenv.Node("n1", "4", "16Gi"))
//		mark := env.Mark()
//		... run the code under test with user, in ns ...
//		testenv.Eventually(t, "n1 is cordoned", func() error { ... })
//		writes := env.Audit(t, mark, func(e testenv.AuditEvent) bool { return e.User == "spotter" && e.Writes() })
//	}
//
// One server serves all tests of a package, each of which takes namespaces and
// names of its own. It comes up in about five seconds on an idle machine and
// ends with the process, however that ends: by return, panic, timeout or a
// signal that cannot be caught.
//
// The binaries are those of `make testenv`, or of the folder that
// KUBEBUILDER_ASSETS names. Where they are absent the test is skipped, or fails
// if SPOTTER_TESTENV is "required".
//
// What users named spotter, or spotter- and more, were let do is collected where
// [UseVariable] says so, and held against what they are granted: live/rights.
package testenv
