// Package scenarios reads scenarios, which are files of Kubernetes manifests, and binds them to the
// trace whose prices they are run on. It does not simulate runs.
//
// A file contains one Scenario and the objects that kubectl applies: pools, workloads, autoscalers,
// budgets and objects that change pods at admission. Objects of other kinds are skipped. Settings
// for which these objects have no field are annotations of the workload or of its pods:
//
//	spotter.dev/duration              running time that one completion of a job requires
//	spotter.dev/checkpoint-interval   interval at which a job saves its work
//	spotter.dev/deadline              time after its release by which a job must finish
//	spotter.dev/replica-schedule      replicas over the week, in UTC:
//	                                  "00:00=4 08:00=12 20:00=6; sat,sun 00:00=3",
//	                                  or since the start: "+0s=4 +26h30m=12"
//	spotter.dev/load-schedule         load of an autoscaled workload, in the same format
//	spotter.dev/releases              times since the start at which instances of a Job
//	                                  are created: "0s 90s 26h*3"; by default once, at 0s
//	spotter.dev/startup-time          time from binding to ready
//	spotter.dev/outage-penalty        hours of pod value that an incident costs
//	spotter.dev/outage-cost-per-hour  dollars per hour of an incident, instead
//	spotter.dev/cpu-utilisation       average CPU use of a pod, as a part of its request
//
// Semicolons separate the parts of a replica schedule. A part names days (mon to sun, lists, and
// ranges such as mon-fri) and then changes in order of time. The part without days applies to all
// days that no other part names. A number applies until the next change, also across midnight.
//
// A schedule that starts with a plus counts every time from the start of the run, so it is the same
// in every window. So do releases, where *3 creates three instances at once. Recorded workloads use
// this form.
package scenarios
