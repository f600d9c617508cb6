package eval

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/spotter-dev/spotter/eval/shard"
	"github.com/spotter-dev/spotter/internal/cli"
)

const (
	containerName = "spotter"
	evalLabel     = "spotter.dev/eval"
	queueLabel    = "kueue.x-k8s.io/queue-name"
	planFile      = "plan.json"
	aboutFile     = "about.json"
	planFolder    = "/plan"
	imageOf       = "ghcr.io/spotter-dev/spotter:"
)

// retriesPerIndex is the maximum number of retries of a pod that failed. Pods that a disruption
// terminated do not count.
const retriesPerIndex = 3

// environment are the variables with the location of the bucket, which are copied to the pods.
// Credentials come from the pod's service account or from --pod-template.
var environment = []string{"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_REGION", "AWS_DEFAULT_REGION"}

// job returns the template of the Jobs that compute parts, as JSON.
func (c *clusterFlags) job(p *cli.Program, r *remote) ([]byte, error) {
	j := &batchv1.Job{
		TypeMeta:   metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"},
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{evalLabel: r.Name}},
		Spec: batchv1.JobSpec{
			CompletionMode: ptr.To(batchv1.IndexedCompletion), Parallelism: ptr.To(int32(c.parallelism)),
			BackoffLimitPerIndex: ptr.To(int32(retriesPerIndex)), MaxFailedIndexes: ptr.To(int32(r.Shards / 10)),
			PodReplacementPolicy: ptr.To(batchv1.Failed),
			PodFailurePolicy: &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{
				{Action: batchv1.PodFailurePolicyActionIgnore,
					OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{{Type: corev1.DisruptionTarget,
						Status: corev1.ConditionTrue}}},
				{Action: batchv1.PodFailurePolicyActionFailIndex, OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{
					ContainerName: ptr.To(containerName), Operator: batchv1.PodFailurePolicyOnExitCodesOpIn, Values: []int32{cli.ExitInvalid},
				}},
			}},
		},
	}
	if c.queue != "" {
		j.Labels[queueLabel], j.Spec.Suspend = c.queue, ptr.To(true)
	}
	var err error
	if j.Spec.Template, err = c.template(p, r); err != nil {
		return nil, err
	}
	return json.Marshal(j)
}

// template returns the pod template of a Job, merged with that of --pod-template.
func (c *clusterFlags) template(p *cli.Program, r *remote) (corev1.PodTemplateSpec, error) {
	var env []corev1.EnvVar
	for _, name := range environment {
		if value := os.Getenv(name); value != "" {
			env = append(env, corev1.EnvVar{Name: name, Value: value})
		}
	}
	t := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{evalLabel: r.Name}},
		Spec: corev1.PodSpec{
			RestartPolicy:                corev1.RestartPolicyNever,
			AutomountServiceAccountToken: ptr.To(false),
			SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: ptr.To(true),
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
			Containers: []corev1.Container{{
				Name: containerName, Image: cmp.Or(c.image, imageOf+strings.TrimPrefix(p.Version, "v")), Env: env,
				SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: ptr.To(false),
					ReadOnlyRootFilesystem: ptr.To(true), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}},
				Resources:                corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("1Gi")}},
				TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
				VolumeMounts: []corev1.VolumeMount{{Name: "plan", MountPath: planFolder, ReadOnly: true},
					{Name: "tmp", MountPath: "/tmp"}},
			}},
			Volumes: []corev1.Volume{
				{Name: "plan",
					VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: r.Name}}}},
				{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
			},
		},
	}
	const advice = "give a PodTemplateSpec in YAML: metadata and spec"
	data, err := c.readTemplate()
	if err != nil {
		return t, cli.Invalid(fmt.Errorf("--pod-template: %w", err), advice)
	}
	if data == nil {
		return t, nil
	}
	patch, err := yaml.YAMLToJSONStrict(data)
	if err != nil {
		return t, cli.Invalid(fmt.Errorf("--pod-template: %s: %w", c.templated, err), advice)
	}
	own, err := json.Marshal(&t)
	if err != nil {
		return t, err
	}
	merged, err := strategicpatch.StrategicMergePatch(own, patch, corev1.PodTemplateSpec{})
	if err == nil {
		t = corev1.PodTemplateSpec{}
		err = yaml.UnmarshalStrict(merged, &t)
	}
	if err != nil {
		return t, cli.Invalid(fmt.Errorf("--pod-template: %s: %w", c.templated, err), advice)
	}
	if !slices.ContainsFunc(t.Spec.Containers, func(x corev1.Container) bool { return x.Name == containerName }) {
		return t, cli.Invalid(fmt.Errorf("--pod-template: %s: it leaves no container %s", c.templated, containerName), advice)
	}
	return t, nil
}

func (r *remoteRun) configMap() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: r.Name,
		Labels: map[string]string{evalLabel: r.Name}}}
}

// create creates the ConfigMap with the plan, or opens an existing one.
func (r *remoteRun) create(ctx context.Context) error {
	text, err := r.planText(ctx)
	if err != nil {
		return err
	}
	about, err := json.Marshal(&r.remote)
	if err != nil {
		return err
	}
	m := r.configMap()
	m.Immutable, m.Data = ptr.To(true), map[string]string{aboutFile: string(about)}
	if text != "" {
		m.Data[planFile] = text
	}
	switch err := r.client.Create(ctx, m); {
	case err == nil:
		fmt.Fprintf(r.p.Stderr, "%s started in namespace %s: %d cells in %d parts\n", r.Name, r.namespace, r.Cells, r.Shards)
		return nil
	case apierrors.IsAlreadyExists(err):
		fmt.Fprintf(r.p.Stderr, "%s already exists in namespace %s and is continued\n", r.Name, r.namespace)
		return r.open(ctx, r.Name)
	case apierrors.IsForbidden(err), apierrors.IsNotFound(err):
		return cli.Invalid(fmt.Errorf("making ConfigMap %s in namespace %s: %w", r.Name, r.namespace, err),
			"grant yourself the right to create ConfigMaps and Jobs there: evaluations.create of the chart has the Role")
	default:
		return fmt.Errorf("making ConfigMap %s: %w", r.Name, err)
	}
}

// open reads the comparison from its ConfigMap.
func (r *remoteRun) open(ctx context.Context, name string) error {
	r.Name = name
	m := r.configMap()
	if err := r.client.Get(ctx, client.ObjectKeyFromObject(m), m); err != nil {
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("--attach: reading ConfigMap %s in namespace %s: %w", name, r.namespace, err)
		}
		return cli.Invalid(fmt.Errorf("--attach: ConfigMap %s in namespace %s: %w", name, r.namespace, err),
			"see what is there with `kubectl get configmaps,jobs -l "+evalLabel+"`")
	}
	err := json.Unmarshal([]byte(m.Data[aboutFile]), &r.remote)
	text := []byte(m.Data[planFile])
	if err == nil && r.Plan != "" {
		text, err = r.store.ReadFile(ctx, r.Plan)
	}
	var plan *shard.Plan
	if err == nil {
		plan, err = readPlan(name, text)
	}
	if err != nil {
		return cli.Invalid(fmt.Errorf("--attach: ConfigMap %s in namespace %s: %w", name, r.namespace, err),
			"delete it and start again")
	}
	r.plan = *plan
	return nil
}

// newest returns the Job of the last round, or nil before the first.
func (r *remoteRun) newest(ctx context.Context) (*batchv1.Job, error) {
	var all batchv1.JobList
	if err := r.client.List(ctx, &all, client.InNamespace(r.namespace),
		client.MatchingLabels{evalLabel: r.Name}); err != nil {
		return nil, fmt.Errorf("listing the Jobs of %s: %w", r.Name, err)
	}
	var last *batchv1.Job
	for i := range all.Items {
		if j := &all.Items[i]; last == nil || roundOf(j) > roundOf(last) {
			last = j
		}
	}
	return last, nil
}

// roundOf returns the round of a Job, starting at 1, or 0 for nil.
func roundOf(j *batchv1.Job) (n int) {
	if j == nil {
		return 0
	}
	_, _ = fmt.Sscanf(j.Name[strings.LastIndex(j.Name, "-")+1:], "%d", &n) // 0 for a name that Spotter did not choose
	return n
}

// start creates the Job of the round after last, which computes the missing parts, and returns its
// name.
func (r *remoteRun) start(ctx context.Context, last *batchv1.Job, missing []int) (name string, err error) {
	var j batchv1.Job
	if err := json.Unmarshal(r.Job, &j); err != nil {
		return "", err
	}
	m := r.configMap()
	if err := r.client.Get(ctx, client.ObjectKeyFromObject(m), m); err != nil {
		return "", fmt.Errorf("reading ConfigMap %s: %w", r.Name, err)
	}
	j.Namespace, j.Name = r.namespace, fmt.Sprintf("%s-%d", r.Name, roundOf(last)+1)
	j.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: m.Name, UID: m.UID}}
	j.Spec.Completions, j.Spec.Parallelism = ptr.To(int32(len(missing))), ptr.To(min(*j.Spec.Parallelism,
		int32(len(missing))))
	j.Spec.MaxFailedIndexes = ptr.To(min(*j.Spec.MaxFailedIndexes, int32(len(missing))))
	plan := cmp.Or(r.Plan, planFolder+"/"+planFile)
	words := make([]string, len(missing))
	for i, n := range missing {
		words[i] = fmt.Sprint(n)
	}
	list := fmt.Sprintf("%s/%d", strings.Join(words, ","), r.Shards)
	if len(missing) == r.Shards {
		list = fmt.Sprint(r.Shards)
	}
	at := slices.IndexFunc(j.Spec.Template.Spec.Containers,
		func(x corev1.Container) bool { return x.Name == containerName })
	j.Spec.Template.Spec.Containers[at].Args = []string{"eval", "--plan", plan, "--shard", list, "--out", r.Parts + "/",
		"--yes", "--quiet"}
	if err := r.client.Create(ctx, &j); err != nil && !apierrors.IsAlreadyExists(err) {
		if apierrors.IsForbidden(err) || apierrors.IsInvalid(err) {
			return "", cli.Invalid(fmt.Errorf("making Job %s: %w", j.Name, err),
				"fix --pod-template, or grant yourself the right to create Jobs there: evaluations.create of the chart has the "+
					"Role")
		}
		return "", fmt.Errorf("making Job %s: %w", j.Name, err)
	}
	return j.Name, nil
}

// ended reports whether j is complete or failed.
func ended(j *batchv1.Job) bool {
	return condition(j, batchv1.JobComplete) != nil || condition(j, batchv1.JobFailed) != nil
}

func condition(j *batchv1.Job, kind batchv1.JobConditionType) *batchv1.JobCondition {
	i := slices.IndexFunc(j.Status.Conditions, func(c batchv1.JobCondition) bool {
		return c.Type == kind &&
			c.Status == corev1.ConditionTrue
	})
	if i < 0 {
		return nil
	}
	return &j.Status.Conditions[i]
}

// failure returns why a Job failed, with the termination message of one of its pods. It is empty if
// the Job did not fail.
func (r *remoteRun) failure(ctx context.Context, j *batchv1.Job) string {
	failed := condition(j, batchv1.JobFailed)
	if failed == nil {
		return ""
	}
	why := fmt.Sprintf("%s: %s; indices %s", failed.Reason, failed.Message, ptr.Deref(j.Status.FailedIndexes, "none"))
	var pods corev1.PodList
	if err := r.client.List(ctx, &pods, client.InNamespace(r.namespace),
		client.MatchingLabels{batchv1.JobNameLabel: j.Name}); err != nil {
		return errors.Join(errors.New(why), err).Error()
	}
	for i := range pods.Items {
		for _, s := range pods.Items[i].Status.ContainerStatuses {
			if t := s.State.Terminated; t != nil && t.ExitCode != 0 {
				return fmt.Sprintf("%s; pod %s ended with %d: %s", why, pods.Items[i].Name, t.ExitCode,
					strings.TrimSpace(t.Message))
			}
		}
	}
	return why
}
