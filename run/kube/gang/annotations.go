package gang

// The labels and annotations of Muster. All are optional.
const (
	AnnotationQueue      = "muster.dev/queue"
	AnnotationUser       = "muster.dev/user"
	AnnotationElastic    = "muster.dev/elastic"
	AnnotationWorkers    = "muster.dev/workers"
	AnnotationWork       = "muster.dev/work"
	AnnotationDeadline   = "muster.dev/deadline"
	AnnotationCheckpoint = "muster.dev/checkpoint"
	AnnotationModels     = "muster.dev/devices"
	AnnotationProfile    = "muster.dev/profile"
	AnnotationSkew       = "muster.dev/skew"
	AnnotationTraffic    = "muster.dev/traffic"
	AnnotationLaw        = "muster.dev/law"
	AnnotationGang       = "muster.dev/gang"
	AnnotationGangSize   = "muster.dev/gang-size"
)

// Annotation describes one label or annotation, for the documentation.
type Annotation struct {
	Name string
	// Label says that it is read as a label too, which goes first.
	Label   bool
	Example string
	Says    string
	// Otherwise is what holds without it.
	Otherwise string
}

var annotations = []Annotation{
	{AnnotationQueue, true, "research/vision", "The queue that the job belongs to, on it, its pods or their namespace; kueue.x-k8s.io/queue-name is read too. A label cannot hold a slash, an annotation can.", "The namespace."},
	{AnnotationUser, false, "ada@example.org", "Whose job it is, on it, its pods or their namespace.", "The namespace."},
	{AnnotationElastic, false, "2-8", "The numbers of workers that the job can run with, as a range or a list of at most 8 (2,4,8); of a range of more than 8 the ends, the number asked for and doublings of the least are used. In a job of several roles it goes on the template of the one that grows.", "The job runs with as many as it has, or as a PyTorchJob's elasticPolicy says."},
	{AnnotationWorkers, false, "4", "The number of workers that an elastic job was submitted with, which muster.dev/work counts on; for one that has been resized before Muster knows it.", "As many as the job has."},
	{AnnotationWork, false, "2h30m", "How long the job runs on as many workers as it was submitted with, without restarts.", "Unknown."},
	{AnnotationDeadline, false, "12h", "When the job must be done, as a span of time from its creation or as an instant (2026-07-01T18:00:00Z).", "None."},
	{AnnotationCheckpoint, false, "every=30m,save=20s,load=40s,on-request", "How the job saves its work: every how long, what a save and a restore take, and on-request where it saves on the termination signal; such a save must fit in terminationGracePeriodSeconds, which is also what it is taken to last where save is left out.", "Nothing is saved: a job that is stopped starts anew."},
	{AnnotationModels, false, "A100,H100", "The device models that the job may run on, by a part of their names in any case.", "Any."},
	{AnnotationProfile, false, "resnet50/64", "The kind of work, the key to measured speeds.", "Unknown."},
	{AnnotationSkew, false, "120m", "The largest tensor's part of the model, 0 to 1 or in thousandths.", "0."},
	{AnnotationTraffic, false, "2Gbps", "What each worker sends to others at full speed.", "Unknown."},
	{AnnotationLaw, false, "give-way", "The fast law that a live worker is under.", "None."},
	{AnnotationGang, true, "bert", "The gang that a pod belongs to, for pods that no Job, JobSet or pod group holds together; pods of the same name in a namespace start together.", "Each such pod by itself."},
	{AnnotationGangSize, true, "4", "How many pods that gang has; the same on each of them.", "The gang waits, as its size is not known."},
}
