package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// ordinaryPod is a worker of a Job as the API server has it.
func ordinaryPod(i int) *corev1.Pod {
	at := metav1.Time{Time: time.Unix(1_700_000_000, 0)}
	yes, name := true, fmt.Sprintf("train-%d", i)
	managed := metav1.NewFieldsV1(`{"f:metadata":{"f:annotations":{".":{},"f:batch.kubernetes.io/job-completion-index":{}},"f:finalizers":{".":{},"v:\"batch.kubernetes.io/job-tracking\"":{}},"f:labels":{".":{},"f:batch.kubernetes.io/controller-uid":{},"f:job-name":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"main\"}":{".":{},"f:env":{},"f:image":{},"f:name":{},"f:resources":{}}}}}`)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, GenerateName: "train-", Namespace: "research", UID: types.UID(fmt.Sprintf("7c1f4b2e-%012d", i)),
			ResourceVersion: fmt.Sprint(1000 + i), CreationTimestamp: at, Labels: map[string]string{"batch.kubernetes.io/controller-uid": "7c1f", "batch.kubernetes.io/job-completion-index": "3",
				"batch.kubernetes.io/job-name": "train", "controller-uid": "7c1f", "job-name": "train"}, Annotations: map[string]string{"batch.kubernetes.io/job-completion-index": "3"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "train", UID: "7c1f", Controller: &yes, BlockOwnerDeletion: &yes}},
			Finalizers:      []string{"batch.kubernetes.io/job-tracking"},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kube-controller-manager", Operation: "Update", APIVersion: "v1", Time: &at, FieldsType: "FieldsV1",
				FieldsV1: managed}}},
		Spec: corev1.PodSpec{SchedulerName: "muster", RestartPolicy: "Never", ServiceAccountName: "default", Tolerations: []corev1.Toleration{{Key: "node.kubernetes.io/not-ready",
			Operator: "Exists", Effect: "NoExecute"}, {Key: "node.kubernetes.io/unreachable", Operator: "Exists", Effect: "NoExecute"}},
			Volumes: []corev1.Volume{{Name: "kube-api-access"}},
			Containers: []corev1.Container{{Name: "main", Image: "registry.example.com/team/train:1.2.3", Command: []string{"python", "train.py"},
				Env: []corev1.EnvVar{{Name: "JOB_COMPLETION_INDEX", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.labels"}}}},
				Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("8"), "cpu": resource.MustParse("64"),
					"memory": resource.MustParse("512Gi")}, Requests: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("8"), "cpu": resource.MustParse("64"),
					"memory": resource.MustParse("512Gi")}}}}},
		Status: corev1.PodStatus{Phase: "Pending", QOSClass: "Guaranteed"},
	}
}

// stream is the body of a watch that sends pods and then that these were all.
func stream(b *testing.B, pods int) []byte {
	info, _ := kruntime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), inProtobuf)
	whole := scheme.Codecs.EncoderForVersion(info.Serializer, corev1.SchemeGroupVersion)
	parts := scheme.Codecs.EncoderForVersion(info.StreamSerializer.Serializer, corev1.SchemeGroupVersion)
	var out bytes.Buffer
	w := info.StreamSerializer.NewFrameWriter(&out)
	send := func(kind string, p *corev1.Pod) {
		raw, err := kruntime.Encode(whole, p)
		must(b, err)
		frame, err := kruntime.Encode(parts, &metav1.WatchEvent{Type: kind, Object: kruntime.RawExtension{Raw: raw}})
		must(b, err)
		_, err = w.Write(frame)
		must(b, err)
	}
	for i := range pods {
		send("ADDED", ordinaryPod(i))
	}
	send("BOOKMARK", &corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "9999999", Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"}}})
	return out.Bytes()
}

// BenchmarkPodsWatched measures how many pods a second come from the wire to the
// first batch, and what one holds of memory.
func BenchmarkPodsWatched(b *testing.B) {
	const n = 20_000
	body := stream(b, n)
	done := make(chan struct{})
	defer close(done)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", inProtobuf+";stream=watch")
		_, _ = w.Write(body)
		w.(http.Flusher).Flush()
		select {
		case <-r.Context().Done():
		case <-done:
		}
	}))
	defer func() { go s.Close() }()
	c, err := New(&rest.Config{Host: s.URL}, Options{})
	must(b, err)
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		ctx, cancel := context.WithCancel(b.Context())
		listed := make(chan struct{}, 1)
		k := &kind{gvr: pods, settled: listed, log: c.options.Log}
		f := newFeed(newMailbox(), k.list)
		ended := make(chan struct{})
		go func() { defer close(ended); k.reflect(ctx, c.listWatch(pods), &corev1.Pod{}, f) }()
		<-listed
		if told := f.box.take(); len(told) != n {
			b.Fatalf("%d pods were told", len(told))
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/n, "heap-B/pod")
		cancel()
		<-ended
		runtime.KeepAlive(f)
	}
	b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "pods/s")
}

// BenchmarkJobsAsUnstructured compares the two ways to a Job as an unstructured object:
// JSON, and protobuf that is converted.
func BenchmarkJobsAsUnstructured(b *testing.B) {
	p := ordinaryPod(1)
	p.Spec.NodeName = ""
	n := int32(8)
	j := &batchv1.Job{TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"}, ObjectMeta: p.ObjectMeta,
		Spec:   batchv1.JobSpec{Parallelism: &n, Completions: &n, Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: p.Labels}, Spec: p.Spec}},
		Status: batchv1.JobStatus{Active: 8}}
	text, err := json.Marshal(j)
	must(b, err)
	info, _ := kruntime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), inProtobuf)
	wire, err := kruntime.Encode(scheme.Codecs.EncoderForVersion(info.Serializer, batchv1.SchemeGroupVersion), j)
	must(b, err)
	b.Run("json", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _, err := unstructured.UnstructuredJSONScheme.Decode(text, nil, nil)
			must(b, err)
		}
	})
	b.Run("protobuf", func(b *testing.B) {
		decoder := scheme.Codecs.UniversalDeserializer()
		b.ReportAllocs()
		for b.Loop() {
			o, _, err := decoder.Decode(wire, nil, nil)
			must(b, err)
			o.(*batchv1.Job).ManagedFields = nil
			_, err = kruntime.DefaultUnstructuredConverter.ToUnstructured(o)
			must(b, err)
		}
	})
}
