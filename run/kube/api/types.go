package api

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// The API group of Muster's own kinds.
const (
	Group      = "muster.dev"
	Version    = "v1alpha1"
	KindJob    = "MusterJob"
	KindLedger = "MusterLedger"
)

// GroupVersion is the API group with its version.
var GroupVersion = schema.GroupVersion{Group: Group, Version: Version}

// The resources of the two kinds.
var (
	JobResource    = GroupVersion.WithResource("musterjobs")
	LedgerResource = GroupVersion.WithResource("musterledgers")
)

// Job is a MusterJob: what is asked for one job, and what the API server cannot know
// of how far it is. It lies beside the job's owner and goes with it.
type Job struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   JobSpec   `json:"spec"`
	Status JobStatus `json:"status,omitempty"`
}

// JobSpec is what is asked, as Muster understood it.
type JobSpec struct {
	Owner            JobOwner `json:"owner"`
	Gang             int32    `json:"gang"`
	Sizes            []int32  `json:"sizes,omitempty"` // ascending; empty is Gang only
	DevicesPerWorker int32    `json:"devicesPerWorker"`
	ShareMilli       int32    `json:"shareMilli,omitempty"` // of each device
	Models           []string `json:"models,omitempty"`     // empty is any
	Queue            string   `json:"queue,omitempty"`
	User             string   `json:"user,omitempty"`
	Priority         int32    `json:"priority,omitempty"`
	EstimateSeconds  int64    `json:"estimateSeconds,omitempty"`
	TimeLimitSeconds int64    `json:"timeLimitSeconds,omitempty"`
	DeadlineSeconds  int64    `json:"deadlineSeconds,omitempty"` // from submission
	Checkpoint       string   `json:"checkpoint,omitempty"`
	Profile          string   `json:"profile,omitempty"`
}

// JobOwner is the object that makes the job's pods; UID is empty for a group that is
// only a label of its pods.
type JobOwner struct {
	APIVersion string    `json:"apiVersion"`
	Kind       string    `json:"kind"`
	Name       string    `json:"name"`
	UID        types.UID `json:"uid"`
}

// JobStatus is how far the job is: for people up to Placement, for the engine Exact,
// which alone is read again.
type JobStatus struct {
	Phase  string `json:"phase,omitempty"`
	Reason string `json:"reason,omitempty"` // in words
	Number int64  `json:"number"`           // the engine's id of the job

	Attempt   int32        `json:"attempt,omitempty"`
	Workers   int32        `json:"workers,omitempty"`
	Submitted *metav1.Time `json:"submittedAt,omitempty"`
	Started   *metav1.Time `json:"startedAt,omitempty"`
	Ended     *metav1.Time `json:"endedAt,omitempty"`

	WaitedSeconds        int64 `json:"waitedSeconds,omitempty"`
	ExecutedSeconds      int64 `json:"executedSeconds,omitempty"`
	ServiceDeviceSeconds int64 `json:"serviceDeviceSeconds,omitempty"`
	Preemptions          int32 `json:"preemptions,omitempty"`
	Restarts             int32 `json:"restarts,omitempty"`
	Failures             int32 `json:"failures,omitempty"`

	// Memory is the two words that the strategy in use keeps for the job.
	Memory    [2]int64 `json:"memory"`
	Placement []Place  `json:"placement,omitempty"`

	// Fence is the term of leadership that wrote this.
	Fence string `json:"fence,omitempty"`
	// Exact is all that the engine knows of the job, encoded by who writes it.
	Exact string `json:"exact,omitempty"`
}

// Place is the part of a job that is on one node.
type Place struct {
	Node    string  `json:"node"`
	Workers int32   `json:"workers"`
	Devices []int32 `json:"devices,omitempty"` // by index on the node
}

// Ledger is a MusterLedger: what a scheduler knows beside its jobs.
type Ledger struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   LedgerSpec   `json:"spec"`
	Status LedgerStatus `json:"status,omitempty"`
}

// LedgerSpec says whose ledger it is. A ledger is named after its scheduler.
type LedgerSpec struct {
	Scheduler string `json:"scheduler"` // as in the pods' schedulerName
}

// LedgerStatus is what the scheduler knows: Exact alone is read again.
type LedgerStatus struct {
	Strategy string `json:"strategy,omitempty"`
	Commits  int64  `json:"commits"`
	Nodes    int32  `json:"nodes"`
	Jobs     int64  `json:"jobs"`
	Fence    string `json:"fence,omitempty"`
	Exact    string `json:"exact,omitempty"`
}

// DeepCopy returns a copy that shares nothing.
func (j *Job) DeepCopy() *Job {
	c := *j
	c.ObjectMeta = *j.ObjectMeta.DeepCopy()
	c.Spec.Sizes = slices.Clone(j.Spec.Sizes)
	c.Spec.Models = slices.Clone(j.Spec.Models)
	c.Status.Submitted = j.Status.Submitted.DeepCopy()
	c.Status.Started = j.Status.Started.DeepCopy()
	c.Status.Ended = j.Status.Ended.DeepCopy()
	c.Status.Placement = slices.Clone(j.Status.Placement)
	for i := range c.Status.Placement {
		c.Status.Placement[i].Devices = slices.Clone(c.Status.Placement[i].Devices)
	}
	return &c
}

// DeepCopyObject is for clients of Kubernetes.
func (j *Job) DeepCopyObject() runtime.Object { return j.DeepCopy() }

// DeepCopy returns a copy that shares nothing.
func (l *Ledger) DeepCopy() *Ledger {
	c := *l
	c.ObjectMeta = *l.ObjectMeta.DeepCopy()
	return &c
}

// DeepCopyObject is for clients of Kubernetes.
func (l *Ledger) DeepCopyObject() runtime.Object { return l.DeepCopy() }

// OwnedBy is the reference that makes a record go with the object that it is about. It
// holds up neither that object's deletion nor claims to control the record.
func OwnedBy(o JobOwner) []metav1.OwnerReference {
	if o.UID == "" {
		return nil
	}
	return []metav1.OwnerReference{{APIVersion: o.APIVersion, Kind: o.Kind, Name: o.Name, UID: o.UID}}
}
