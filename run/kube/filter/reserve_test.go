package filter

import (
	"context"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/musterdl/muster/run/kube/filter/filtertest"
)

// caseOf finds a row of the table.
func caseOf(t testing.TB, name string) filtertest.Case {
	for _, c := range filtertest.Cases() {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("the table has no row %q", name)
	return filtertest.Case{}
}

// eventually waits for what the informers are about to bring.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for start := time.Now(); !is(); time.Sleep(time.Millisecond) {
		if time.Since(start) > 10*time.Second {
			t.Fatalf("still not: %s", what)
		}
	}
}

// A claim of two devices is allocated and reserved in the API server before the pod is bound, as upstream does it.
func TestClaimIsAllocatedBeforeBinding(t *testing.T) {
	c := caseOf(t, "claim of two devices")
	h, client := hostOf(t, append(slices.Clone(c.Objects), runtime.Object(c.Pod))...)
	reservation, refusal, err := h.Reserve(t.Context(), c.Pod, "a")
	if refusal != nil || err != nil {
		t.Fatal(refusal, err)
	}
	if refusal, err := reservation.PreBind(t.Context()); refusal != nil || err != nil {
		t.Fatal(refusal, err)
	}
	claim, err := client.ResourceV1().ResourceClaims("default").Get(t.Context(), "two", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if claim.Status.Allocation == nil || len(claim.Status.Allocation.Devices.Results) != 2 {
		t.Fatalf("allocation %+v, want two devices", claim.Status.Allocation)
	}
	if len(claim.Status.ReservedFor) != 1 || claim.Status.ReservedFor[0].UID != c.Pod.UID {
		t.Errorf("reserved for %+v", claim.Status.ReservedFor)
	}
	// The check of another such claim now finds no device, though the engine's view does.
	other := claim.DeepCopy()
	other.Name, other.UID, other.ResourceVersion = "again", "again", ""
	other.Status.Allocation, other.Status.ReservedFor = nil, nil
	if _, err := client.ResourceV1().ResourceClaims("default").Create(t.Context(), other, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	second := c.Pod.DeepCopy()
	second.Name, second.UID = "second", "second"
	second.Spec.ResourceClaims[0].ResourceClaimName = &other.Name
	eventually(t, "the new claim is known", func() bool {
		_, err := h.devices.ResourceClaims().Get("default", other.Name)
		return err == nil
	})
	if set, err := h.Nodes(t.Context(), second); err != nil || !slices.Equal(set.Allowed, []string{"a"}) {
		t.Errorf("open node set %v, %v", set, err)
	}
	if refusal, err := h.Check(t.Context(), []Placed{{second, "a"}}); err != nil || refusal == nil {
		t.Errorf("strict check: %v, %v", refusal, err)
	}
	reservation.Undo(t.Context())
	if pods, _ := h.cache.PodCount(); pods != 0 {
		t.Errorf("%d pods assumed after Undo", pods)
	}
}

// A claim that waits for its first pod is bound to the volume of the node, by upstream's own binder; the volume
// controller's part is played here.
func TestVolumeIsBoundBeforeBinding(t *testing.T) {
	c := caseOf(t, "claim that waits for its first pod, one volume")
	h, client := hostOf(t, append(slices.Clone(c.Objects), runtime.Object(c.Pod))...)
	if _, refusal, err := h.Reserve(t.Context(), c.Pod, "a"); err != nil || refusal == nil {
		t.Fatalf("reserved on a node without the volume: %v, %v", refusal, err)
	}
	reservation, refusal, err := h.Reserve(t.Context(), c.Pod, "c")
	if refusal != nil || err != nil {
		t.Fatal(refusal, err)
	}
	done := make(chan error, 1)
	go func() { done <- bindLikeTheController(t.Context(), client) }()
	if refusal, err := reservation.PreBind(t.Context()); refusal != nil || err != nil {
		t.Fatal(refusal, err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func bindLikeTheController(ctx context.Context, client *fake.Clientset) error {
	for {
		v, err := client.CoreV1().PersistentVolumes().Get(ctx, "v", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if v.Spec.ClaimRef == nil {
			time.Sleep(time.Millisecond)
			continue
		}
		claim, err := client.CoreV1().PersistentVolumeClaims("default").Get(ctx, v.Spec.ClaimRef.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		claim.Spec.VolumeName = v.Name
		claim.Status.Phase = corev1.ClaimBound
		claim.Annotations = map[string]string{"pv.kubernetes.io/bind-completed": "yes"}
		_, err = client.CoreV1().PersistentVolumeClaims("default").Update(ctx, claim, metav1.UpdateOptions{})
		return err
	}
}

// A claim left allocated on a node where the pod cannot run any more is freed, so that the pod can go elsewhere.
func TestReleaseFreesAClaimOfALostAttempt(t *testing.T) {
	c := caseOf(t, "claim that is allocated")
	h, client := hostOf(t, c.Objects...)
	if words, err := h.Release(t.Context(), c.Pod); err != nil || words != "" {
		t.Errorf("released though it has somewhere to go: %q, %v", words, err)
	}
	closed := h.nodes["b"].DeepCopy()
	closed.Spec.Unschedulable = true
	h.SetNode(closed)
	c.Pod.Spec.NodeSelector = map[string]string{corev1.LabelHostname: "a"}
	words, err := h.Release(t.Context(), c.Pod)
	if err != nil || words == "" {
		t.Fatalf("not released: %q, %v", words, err)
	}
	claim, err := client.ResourceV1().ResourceClaims("default").Get(t.Context(), "one", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if claim.Status.Allocation != nil {
		t.Errorf("the claim is still allocated, though upstream says %q", words)
	}
}

// Volumes, claims and namespaces change through informers; node sets that depend on them follow.
func TestNodeSetsFollowOtherObjects(t *testing.T) {
	c := caseOf(t, "volume claim that is not there")
	h, client := hostOf(t, c.Objects...)
	set, err := h.Nodes(t.Context(), c.Pod)
	if err != nil || len(set.Allowed) != 0 {
		t.Fatal(set, err)
	}
	bound := caseOf(t, "claim bound to a local volume")
	for _, object := range bound.Objects {
		switch o := object.(type) {
		case *corev1.PersistentVolume:
			_, err = client.CoreV1().PersistentVolumes().Create(t.Context(), o, metav1.CreateOptions{})
		case *corev1.PersistentVolumeClaim:
			_, err = client.CoreV1().PersistentVolumeClaims(o.Namespace).Create(t.Context(), o, metav1.CreateOptions{})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the pod may go to the node of its volume", func() bool {
		set, err := h.Nodes(t.Context(), c.Pod)
		return err == nil && slices.Equal(set.Allowed, []string{"b"})
	})
}
