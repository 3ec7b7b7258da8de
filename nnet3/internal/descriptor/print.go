package descriptor

import "strconv"

// Format prints the descriptor in Kaldi's syntax. Parsing the result gives an equal descriptor.
// Numbers have as many digits as that takes; for numbers written by Kaldi these are Kaldi's digits.
func (d *Descriptor) Format(nodeName func(node int) string) string {
	if len(d.Parts) == 1 {
		return string(d.Parts[0].append(nil, nodeName))
	}
	dst := []byte("Append")
	for i := range d.Parts {
		dst = d.Parts[i].append(append(dst, separator(i)...), nodeName)
	}
	return string(append(dst, ')'))
}

// separator returns the text before argument i of a function.
func separator(i int) string {
	if i == 0 {
		return "("
	}
	return ", "
}

func (s *Sum) append(dst []byte, nodeName func(node int) string) []byte {
	switch s.Kind {
	case Simple:
		return s.Forward.append(dst, nodeName)
	case Const:
		dst = appendReal(append(dst, "Const("...), s.Value)
		dst = append(dst, ", "...)
		return append(strconv.AppendInt(dst, int64(s.Dim), 10), ')')
	case Add: // pairs to the right: Sum(a, Sum(b, c))
		last := len(s.Args) - 1
		for i := range s.Args {
			if i < last {
				dst = append(dst, "Sum("...)
			}
			dst = s.Args[i].append(dst, nodeName)
			if i < last {
				dst = append(dst, ", "...)
			}
		}
		for range last {
			dst = append(dst, ')')
		}
		return dst
	case Failover:
		dst = s.Args[0].append(append(dst, "Failover("...), nodeName)
		return append(s.Args[1].append(append(dst, ", "...), nodeName), ')')
	default: // IfDefined
		return append(s.Args[0].append(append(dst, "IfDefined("...), nodeName), ')')
	}
}

func (f *Forward) append(dst []byte, nodeName func(node int) string) []byte {
	switch f.Kind {
	case Node:
		name := nodeName(int(f.Node))
		if f.Scale == 1 {
			return append(dst, name...)
		}
		dst = appendReal(append(dst, "Scale("...), f.Scale)
		return append(append(append(dst, ", "...), name...), ')')
	case Offset:
		dst = f.Src[0].append(append(dst, "Offset("...), nodeName)
		dst = appendInt(dst, f.Shift.T)
		if f.Shift.X != 0 {
			dst = appendInt(dst, f.Shift.X)
		}
	case Switch:
		dst = append(dst, "Switch"...)
		for i := range f.Src {
			dst = f.Src[i].append(append(dst, separator(i)...), nodeName)
		}
	case Round:
		dst = f.Src[0].append(append(dst, "Round("...), nodeName)
		dst = appendInt(dst, f.Modulus)
	case ReplaceT, ReplaceX:
		dst = f.Src[0].append(append(dst, "ReplaceIndex("...), nodeName)
		if f.Kind == ReplaceT {
			dst = append(dst, ", t"...)
		} else {
			dst = append(dst, ", x"...)
		}
		dst = appendInt(dst, f.Value)
	}
	return append(dst, ')')
}

func appendInt(dst []byte, v int32) []byte {
	return strconv.AppendInt(append(dst, ", "...), int64(v), 10)
}

func appendReal(dst []byte, v float32) []byte {
	return strconv.AppendFloat(dst, float64(v), 'g', -1, 32)
}
