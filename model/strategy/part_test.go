package strategy

import "testing"

type speaker interface{ Speak() string }

type walker interface{ Walk() string }

type dog struct{}

func (dog) Speak() string { return "wuff" }
func (dog) Walk() string  { return "on four" }

// muzzled stands around a speaker and says something else.
type muzzled struct{ Around[speaker] }

func (m muzzled) Speak() string { return "m" + m.Inner.Speak() }

// TestCan: an ability is found in what has it, through as many wrappers as there are; what
// a wrapper does itself is its own.
func TestCan(t *testing.T) {
	around := muzzled{Around[speaker]{muzzled{Around[speaker]{dog{}}}}}
	if w, can := Can[walker](around); !can || w.Walk() != "on four" {
		t.Errorf("an ability is not found behind two wrappers: %v", w)
	}
	if s, can := Can[speaker](around); !can || s.Speak() != "mmwuff" {
		t.Errorf("the outermost is asked last: %v", s)
	}
	for _, without := range []any{nil, muzzled{}, struct{}{}} {
		if w, can := Can[walker](without); can || w != nil {
			t.Errorf("%#v can walk", without)
		}
	}
}

// TestIn: what fills a part is had by its contract; nobody is the contract's zero value.
func TestIn(t *testing.T) {
	sound, gait := NewPart[speaker](Part{Name: "sound"}), NewPart[walker](Part{Name: "gait"})
	f := Filled{sound: {"dog", dog{}}}
	if s := In[speaker](f, sound); s == nil || s.Speak() != "wuff" {
		t.Errorf("the sound is %v", s)
	}
	if w := In[walker](f, gait); w != nil {
		t.Errorf("an open part is filled by %v", w)
	}
	if !gait.Fulfils(dog{}) || gait.Fulfils(muzzled{}) {
		t.Error("a part does not know who fulfils its contract")
	}
}
