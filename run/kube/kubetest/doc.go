// Package kubetest runs a real Kubernetes control plane for tests and measurements: etcd, the API server and,
// where asked for, the controller manager, the upstream scheduler, kwok (which plays the nodes) and the JobSet
// controller, as plain processes on loopback ports of one Linux machine.
//
// No container engine and no registry is needed: Build makes the programs from pinned Go modules, once per
// machine, into a cache folder named after their versions. Start brings a control plane up in a few seconds and
// takes it down with the test. Cluster.Measure and MeasureFake put one load on any scheduler, so that several can
// be compared in one run.
//
// Building takes about ten minutes the first time, so Start does it only where MUSTER_LONG=1 is set and otherwise
// skips the test unless the programs are there already. MUSTER_KUBETEST_BIN names a folder of ready programs.
package kubetest
