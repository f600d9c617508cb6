package main

import (
	"log"
	"path/filepath"
	"strings"
)

func generateRackspace(dir string) {
	t := map[string]*machine{}
	rows(filepath.Join(dir, "rackspace_weekly_2026-05-26_2026-07-13.csv"), func(get func(string) string) {
		name := get("serverclass")
		memory, ok := strings.CutSuffix(get("memory"), "GB")
		if !ok {
			log.Fatalf("%s: memory %q", name, get("memory"))
		}
		m := t[name]
		if m == nil {
			m = &machine{name: name, vcpu: integer(get("cpu")), memoryMiB: int64(number(memory) * 1024),
				price: map[string]string{}}
			if get("category") == "GPU" {
				m.gpus, m.gpuName, m.gpuKind = 1, "a30", "nvidia"
			}
			t[name] = m
		}
		m.price[get("region")] = "sold"
	})
	write("rackspace.tsv", t, table{head: []string{
		"Rackspace Spot server classes and where they are sold; there is no published on-demand price. From the",
		"public feed of market prices, 2026-05-26 to 2026-07-13. The GPU is by Rackspace Spot's documentation, which",
		"names NVIDIA H100 and A30 without numbers: at a market price of $0.15 an hour this class holds one A30.",
	}})
}
