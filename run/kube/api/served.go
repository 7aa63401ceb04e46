package api

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// served knows what the API server serves, as of the last time it was asked.
type served struct {
	client *discovery.DiscoveryClient

	mu        sync.Mutex
	resources map[schema.GroupVersionResource]metav1.APIResource
}

// ask asks again. Groups whose own server does not answer are kept as they were.
func (s *served) ask() error {
	_, lists, err := s.client.ServerGroupsAndResources()
	var part *discovery.ErrGroupDiscoveryFailed
	if err != nil && !errors.As(err, &part) {
		return fmt.Errorf("asking what is served: %w", err)
	}
	resources, silent := map[schema.GroupVersionResource]metav1.APIResource{}, map[schema.GroupVersion]bool{}
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}
		for _, r := range list.APIResources {
			if !strings.Contains(r.Name, "/") {
				resources[gv.WithResource(r.Name)] = r
			}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if part != nil {
		for gv := range part.Groups {
			silent[gv] = true
		}
	}
	for gvr, r := range s.resources {
		if silent[gvr.GroupVersion()] {
			resources[gvr] = r
		}
	}
	s.resources = resources
	return nil
}

// has reports whether a resource is served.
func (s *served) has(gvr schema.GroupVersionResource) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.resources[gvr]
	return ok
}

// resourceOf returns the resource of a kind, asking once more for one that is not
// known.
func (s *served) resourceOf(apiVersion, kind string) (schema.GroupVersionResource, error) {
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return schema.GroupVersionResource{}, fmt.Errorf("apiVersion %q: expected GROUP/VERSION", apiVersion)
	}
	find := func() (schema.GroupVersionResource, bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		for gvr, r := range s.resources {
			if gvr.GroupVersion() == gv && r.Kind == kind {
				return gvr, true
			}
		}
		return schema.GroupVersionResource{}, false
	}
	if gvr, ok := find(); ok {
		return gvr, nil
	}
	if err := s.ask(); err != nil {
		return schema.GroupVersionResource{}, err
	}
	if gvr, ok := find(); ok {
		return gvr, nil
	}
	return schema.GroupVersionResource{}, apierrors.NewNotFound(schema.GroupResource{Group: gv.Group, Resource: kind}, apiVersion)
}
