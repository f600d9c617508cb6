package scenarios

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
)

// readLimitRange records a LimitRange under its namespace. The LimitRanges of a namespace are
// ordered by name.
func (sc *Scenario) readLimitRange(o *corev1.LimitRange) {
	if sc.limitRanges == nil {
		sc.limitRanges = map[string][]*corev1.LimitRange{}
	}
	namespace := cmp.Or(o.Namespace, "default")
	all := slices.Concat(sc.limitRanges[namespace], []*corev1.LimitRange{o})
	slices.SortFunc(all, func(a, b *corev1.LimitRange) int { return cmp.Compare(a.Name, b.Name) })
	sc.limitRanges[namespace] = all
}

func (sc *Scenario) readRuntimeClass(o *nodev1.RuntimeClass) {
	if sc.runtimeClasses == nil {
		sc.runtimeClasses = map[string]*nodev1.RuntimeClass{}
	}
	sc.runtimeClasses[o.Name] = o
}

// admit returns a pod specification as the API server admits it: with the defaults of the
// LimitRanges of its namespace, and with the overhead and scheduling constraints of its
// RuntimeClass. It does not change s.
func (sc *Scenario) admit(workload, namespace string, s *corev1.PodSpec) *corev1.PodSpec {
	ranges := sc.limitRanges[namespace]
	if len(ranges) == 0 && s.RuntimeClassName == nil {
		return s
	}
	s = s.DeepCopy()
	for _, list := range [][]corev1.Container{s.InitContainers, s.Containers} {
		for i := range list {
			for _, r := range ranges {
				limitContainer(&list[i].Resources, r)
			}
		}
	}
	if s.RuntimeClassName == nil {
		return s
	}
	class := sc.runtimeClasses[*s.RuntimeClassName]
	if class == nil {
		sc.note(fmt.Sprintf("RuntimeClass %s is not given, and pods of it have no overhead", *s.RuntimeClassName), workload)
		return s
	}
	if class.Overhead != nil && s.Overhead == nil {
		s.Overhead = class.Overhead.PodFixed
	}
	if class.Scheduling != nil {
		selector := maps.Clone(class.Scheduling.NodeSelector)
		if selector == nil {
			selector = map[string]string{}
		}
		maps.Copy(selector, s.NodeSelector)
		s.NodeSelector = selector
		s.Tolerations = append(s.Tolerations, class.Scheduling.Tolerations...)
	}
	return s
}

// limitContainer sets the limits and requests that a container does not state to those of a
// LimitRange (pkg/apis/core/v1/defaults.go and the admission plugin LimitRanger).
func limitContainer(r *corev1.ResourceRequirements, o *corev1.LimitRange) {
	missing := func(to *corev1.ResourceList, from corev1.ResourceList) {
		if *to == nil {
			*to = corev1.ResourceList{}
		}
		for k, q := range from {
			if _, stated := (*to)[k]; !stated {
				(*to)[k] = q
			}
		}
	}
	for i := range o.Spec.Limits {
		item := &o.Spec.Limits[i]
		if item.Type != corev1.LimitTypeContainer {
			continue
		}
		limits, requests := maps.Clone(item.Default), maps.Clone(item.DefaultRequest)
		missing(&limits, item.Max)
		missing(&requests, limits)
		missing(&requests, item.Min)
		missing(&r.Requests, r.Limits) // API defaulting, which precedes admission
		missing(&r.Requests, requests)
		missing(&r.Limits, limits)
	}
}
