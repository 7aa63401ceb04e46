// Package deploy is how Muster comes to a Kubernetes cluster: the definitions of its
// resources, a Helm chart, the plain manifests that the chart renders with its default
// values, and an image recipe. The definitions are Go values too, for programs and
// tests that install them.
package deploy

import "embed"

//go:embed chart/crds/*.yaml
var crds embed.FS

// CRDs returns the definitions of MusterJob and MusterLedger as YAML, in the order of
// their names.
func CRDs() [][]byte {
	const dir = "chart/crds"
	files, err := crds.ReadDir(dir)
	if err != nil {
		panic(err) // the folder is part of the program
	}
	var all [][]byte
	for _, f := range files {
		text, err := crds.ReadFile(dir + "/" + f.Name())
		if err != nil {
			panic(err) // as above
		}
		all = append(all, text)
	}
	return all
}
