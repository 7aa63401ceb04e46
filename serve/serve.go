// Package serve is about inference services that live in the same cluster as the
// training jobs: how many replicas, with which share of a device and which batch, so
// that requests are answered in time. Strategies are in the folders below.
package serve
