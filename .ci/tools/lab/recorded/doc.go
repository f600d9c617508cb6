// Package recorded turns recorded workloads into scenarios: what was run where, and when,
// becomes manifests that a run can play on any prices.
//
// It reads pod lists of a GPU cluster (openb), hourly counts of virtual machines
// (Snowflake), tables of batch tasks (Alibaba 2017), SimKube traces (JSON or MessagePack)
// and logs of inference requests (Azure), each also gzipped. All become one of three things
// before they are written:
//
//   - tasks, pods that end by themselves, which become Jobs that are released when the pods
//     were created;
//   - services, whose number of pods was recorded, which become Deployments with a replica
//     schedule;
//   - objects, manifests that were recorded themselves.
//
// A window of the recording is taken and its times count from the scenario's start. Many
// thousands of one-off pods are grouped by shape and running time until few enough
// workloads are left; grouping keeps the number of pods, their instants and, except for
// rounding, the hours of pods, cores and memory. The comment at the top of the file lists
// what is assumed and, with counts, what is left out.
//
// The same files and options give the same bytes on every machine.
package recorded
