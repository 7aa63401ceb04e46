// Package workload says what is asked: training jobs, and the truth about them
// that only a simulated world may know. Values only, no I/O; the YAML a user
// writes is read by package spec, published traces by package trace.
package workload

import (
	"math"
	"path"
	"slices"
	"strings"

	"github.com/musterdl/muster/model/unit"
)

// Job is one training job as its owner declares it.
type Job struct {
	// Name is unique among live jobs; the server makes one where the user gives none.
	Name   string
	Tenant string
	User   string
	Submit unit.Time
	// Priority is compared before anything else by orders that honour it; higher first.
	Priority int32
	Resources

	// Estimate is the declared run time on Gang workers, without restarts; 0 is unknown.
	Estimate unit.Duration
	// TimeLimit ends a run of the job after this much running time; 0 is none.
	TimeLimit unit.Duration
	// Deadline is counted from submission; 0 is none.
	Deadline   unit.Duration
	Checkpoint Checkpoint
	// Retries bounds how often the job is started again after failures of its own
	// making; failures of nodes and preemptions do not count.
	Retries int32
	// After names jobs that must have finished first.
	After []string
	// Array is the number of copies submitted as NAME-0, NAME-1, ...; 0 and 1 are one job.
	Array int32
	// Copy is the number of this copy of an array, counted from 1; 0 is a job of its own.
	Copy int32 `yaml:"-" json:",omitempty"`
	Traits
	Program
}

// Resources are what a job runs on.
type Resources struct {
	// Gang is the number of workers; all start together or none does.
	Gang int32
	// Sizes are the legal worker counts of an elastic job, ascending, Gang among
	// them; empty means Gang only.
	Sizes []int32
	// Devices is the number of whole devices per worker (0 for a CPU-only task).
	Devices int32
	// Share is the part of a device per worker, 1..1000; below 1000 Devices is 1.
	Share unit.Milli
	// Models are the allowed device models; empty means any.
	Models []string
	// Memory is the device memory per device; CPU and HostMemory are per worker.
	Memory     unit.MiB
	CPU        unit.Milli
	HostMemory unit.MiB

	// NodeSet numbers the set of nodes, known to who submits the job, that it is confined
	// to; 0 is none. PerNode is how many workers one node takes at most; 0 is any number.
	NodeSet int32 `yaml:"-"`
	PerNode int32 `yaml:"-"`
}

// Traits are what kind of work a job is, as far as its owner tells.
type Traits struct {
	// Class is the kind of work ("resnet50/64"), the key to measured speeds.
	Class string
	// Skew is the largest tensor's part of the model in thousandths; Tiresias
	// consolidates jobs above its limit.
	Skew unit.Milli
	// Traffic is the bandwidth each worker sends to others at full speed.
	Traffic unit.Mbps
	// Pipeline asks step 4 for a plan over this many stages; zero Stages is none.
	Pipeline Pipeline
	// Menu lists how fast the job is believed to go on other numbers and models of
	// devices than it asks for; empty is: in proportion to its workers.
	Menu []Offer
	// Phase is one iteration: how long it computes, how long it communicates at full
	// speed.
	Phase Phase
	// Opportunistic work runs in what others leave and is promised nothing.
	Opportunistic bool
	// Persistent is the part of Memory that stays while the job is resident without
	// computing; 0 is all of it.
	Persistent unit.MiB
	// Group names the tuning jobs that belong together, Base the foundation model that
	// the job fine-tunes.
	Group, Base string
	// Servers is how many of the workers, the first ranks, are parameter servers.
	Servers int32
	// Service makes the job an inference service.
	Service Service
	// TargetLoss is the training loss at which its owner has what he wants; 0 is none.
	TargetLoss float64
}

// Program is what a live driver runs; simulated jobs have none.
type Program struct {
	// Law names the fast law that a live worker is under (package control); empty is
	// none.
	Law string

	Command []string
	Dir     string
	Env     []string
	// Secrets are names of variables in Env whose values are kept out of the journal.
	Secrets []string `json:",omitempty"`
}

// scripts are how the names of files end that a program is told to run.
var scripts = []string{".py", ".sh", ".jl", ".lua", ".pl", ".r", ".rb", ".js"}

// Runs is what the command runs, without folders: its program, less a version, and the first script
// that it names, or else module, if only within what a shell is told. What else it says tells one run
// from the next.
func (p *Program) Runs() string {
	words := strings.Fields(strings.Join(p.Command, " "))
	if len(words) == 0 {
		return ""
	}
	named := ""
	for i, word := range words[1:] {
		word = strings.Trim(word, `"';`)
		if slices.Contains(scripts, strings.ToLower(path.Ext(word))) {
			named = word
			break
		}
		if words[i] == "-m" && named == "" {
			named = word
		}
	}
	program := path.Base(words[0])
	if less := strings.TrimRight(program, "0123456789."); less != "" {
		program = less
	}
	if named == "" {
		return program
	}
	return program + " " + path.Base(named)
}

// Checkpoint is how a job saves its work.
type Checkpoint struct {
	// Every is the interval between the job's own checkpoints; 0 is never.
	Every unit.Duration
	// OnRequest jobs save when asked to, before they are stopped.
	OnRequest bool
	// Save and Load are what one save and one restore cost.
	Save, Load unit.Duration
}

// Pipeline asks for a pipeline-parallel plan: of measured layers over so many stages, or of a
// published model spread over whatever devices the job gets.
type Pipeline struct {
	Stages int32
	// Microbatches is how many a pipeline has in a step. A job of several times as many workers
	// as one needs has so many pipelines side by side, which share the batch.
	Microbatches int32
	// Tensor is over how many workers each layer is sliced; 0 is 1. The layers' profile is that
	// of a slice.
	Tensor int32 `json:",omitempty"`
	// Layers is the profile the cut is made on.
	Layers []Layer
	// Model is the published model in place of stages and layers, and Batch the samples of one
	// of its steps. Shape, where there is one, is what that model is, in JSON: it is its owner's.
	Model string `json:",omitempty"`
	Shape string `json:",omitempty"`
	Batch int32  `json:",omitempty"`
}

// Offer is one way to run a job: so many workers on a device model, on one node or
// on several, with a global batch, and how fast that is.
type Offer struct {
	Model   string // empty is the reference device
	Workers int32
	Nodes   int32 // 0 and 1 are one node; 2 stands for several
	Batch   int32 // 0 is the job's own
	// Rate is the progress per second, where the job's own workers on one node of the
	// reference device make 1.
	Rate float64
	// Plan is the plan that goes so fast, where a planner made the offer.
	Plan Spread `yaml:"-" json:",omitzero"`
}

// Spread is how a planner would spread a model over the devices of an offer.
type Spread struct {
	Name string // in words: sizes of tensor, pipeline and data parallelism, order, microbatches
	// Shape is the plan as its generator reads it, JSON.
	Shape string
	Step  unit.Duration // what is predicted of one step
	Spare Spare         `json:",omitzero"`
	// Sends is what the node that sends most sends to others, in the mean over a step, and Shares how long a step
	// takes with parts of the uplinks; none where no link counts.
	Sends  unit.Mbps `json:",omitzero"`
	Shares []Share   `json:",omitempty"`
}

// Share is a part of the uplinks of a plan's nodes, in thousandths, and a step with it.
type Share struct {
	Milli int32
	Step  unit.Duration
}

// StepAt is how long a step takes with a part of the uplinks, 0..1: between two shares, and beyond the last of
// them, it grows with one over the part.
func StepAt(all []Share, part float64) unit.Duration {
	i := 1
	for i < len(all)-1 && part*1000 < float64(all[i].Milli) {
		i++
	}
	a, b := &all[i-1], &all[i]
	from, to := 1000/float64(a.Milli), 1000/float64(b.Milli)
	along := max(0, 1/part-from) / (to - from)
	return a.Step + unit.Duration(math.Round(along*float64(b.Step-a.Step)))
}

// Spare is what a plan leaves of the devices that it runs on.
type Spare struct {
	// IdleMicro is the part of a step, in millionths, in which a device waits for a pass, in the
	// mean over the devices. While gradients are exchanged nothing counts as idle.
	IdleMicro int64 `json:",omitempty"`
	// Window is how long a device waits at a stretch, in the mean.
	Window unit.Duration `json:",omitempty"`
	// Peaks is the memory that a device needs by rank, PerRank how many of them a rank has: the
	// first are those of the first rank.
	Peaks   []unit.MiB `json:",omitempty"`
	PerRank int32      `json:",omitempty"`
}

// IsZero reports whether nothing is known.
func (s Spare) IsZero() bool { return s.IdleMicro == 0 && len(s.Peaks) == 0 }

// Equal reports whether two plans leave the same.
func (s Spare) Equal(o Spare) bool {
	return s.IdleMicro == o.IdleMicro && s.Window == o.Window && s.PerRank == o.PerRank && slices.Equal(s.Peaks, o.Peaks)
}

// Peak is the memory that a device of the plan needs; 0 is unknown.
func (s Spare) Peak(device int32) unit.MiB {
	if len(s.Peaks) == 0 {
		return 0
	}
	return s.Peaks[min(int(device/max(1, s.PerRank)), len(s.Peaks)-1)]
}

// Idle is the part of a step in which a device waits for a pass, 0..1.
func (s Spare) Idle() float64 { return float64(s.IdleMicro) / 1e6 }

// Phase is one iteration of a job that computes and then communicates.
type Phase struct{ Compute, Communicate unit.Duration }

// Service is what an inference service has to answer, and how fast.
type Service struct {
	RatePerSec float64
	SLO        unit.Duration
}

// Layer is the profile of one layer for one microbatch.
type Layer struct {
	Name                string
	Forward, Backward   unit.Duration
	ParamKiB, OutputKiB int64 // parameters; activations sent to the next layer
	ActivationKiB       int64 // activations kept for the backward pass
}

// Truth is what a trace or generator knows of a job and its owner does not. Only
// the simulated world may read it.
type Truth struct {
	// Duration is the true run time on Gang workers of the reference device,
	// consolidated and undisturbed.
	Duration unit.Duration
	// Sensitivity is the slowdown per doubling of nodes used: spreading over k
	// extra nodes multiplies the duration by 1 + Sensitivity*log2(1+k).
	Sensitivity float64
	// Busy is the part of its device share that the job keeps busy, 0..1; 0 means 1.
	Busy float64
	// Menu lists the true rates on other shapes; empty is what its owner believes.
	Menu []Offer
	// Merge is how much longer a step takes for each other job that is trained together
	// with this one, as a part of its own step alone.
	Merge float64
	// Loss is {a, b, c} of the training loss 1/(a*k + b) + c when k percent of the work
	// are done; all zero is a job that reports none.
	Loss [3]float64
	// NeverSaves is that its trace says so, where a job of which nothing is said would be taken to.
	NeverSaves bool
	// FailAfter ends every attempt as a failure of the user's making after this much
	// running time in all; 0 is never.
	FailAfter unit.Duration
	// Deaf is that it saves nothing when it is asked to, though its owner says that it does.
	Deaf bool
	// Saving is what a save takes, or for how long is waited for one that does not come, where that is longer
	// than its owner says.
	Saving unit.Duration
	// Drifts are when layers of its pipeline begin to take longer or shorter, one after the other.
	Drifts []Drift
}

// Drift is that from a part of a job's work on some of its layers take so many times as long as before
// any drift.
type Drift struct {
	From       float64 // of the work, 0..1
	First, End int32   // the layers from First to before End
	Times      float64
}

// Workers is the number of devices the gang asks for in all, in thousandths.
func (j *Job) Workers() unit.Milli {
	return unit.Milli(j.Gang) * unit.Milli(j.Devices) * j.Share
}
