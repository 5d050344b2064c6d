package rdma

// sum stores in dst the sum ((v0 + v1) + v2) + … of values as they travel; each
// operand holds as many values as dst. dst may be one of the operands.
func (w Wire) sum(dst []float32, operands [][]byte) {
	if w == F32 && len(operands) == 2 {
		add(dst, floats(operands[0]), floats(operands[1]))
		return
	}
	// Block by block, so that the sum so far stays in the first-level cache
	// and dst is written when all operands have been read.
	var block [1024]float32
	size := w.Bytes()
	for done := 0; done < len(dst); done += len(block) {
		acc := block[:min(len(block), len(dst)-done)]
		from, to := done*size, (done+len(acc))*size
		if w == F32 {
			sumF32(acc, operands, from, to)
		} else {
			w.unpack(acc, operands[0][from:to])
			for _, v := range operands[1:] {
				w.addTo(acc, v[from:to])
			}
		}
		copy(dst[done:], acc)
	}
}

// sumF32 adds bytes from:to of all operands up in acc, up to three at a time,
// which spares loads and stores of what was summed so far.
func sumF32(acc []float32, operands [][]byte, from, to int) {
	v := func(i int) []float32 { return floats(operands[i][from:to]) }
	i := 1
	switch {
	case len(operands) == 1:
		copy(acc, v(0))
	case len(operands)%3 == 1:
		add4(acc, v(0), v(1), v(2), v(3))
		i = 4
	case len(operands)%3 == 0:
		add3(acc, v(0), v(1), v(2))
		i = 3
	default:
		add(acc, v(0), v(1))
		i = 2
	}
	for ; i+3 <= len(operands); i += 3 {
		add4(acc, acc, v(i), v(i+1), v(i+2))
	}
}

// add stores a[i]+b[i] in dst[i]. All three have the same length; dst may be a
// or b.
func add(dst, a, b []float32) {
	a, b = a[:len(dst)], b[:len(dst)]
	for len(dst) >= 8 && len(a) >= 8 && len(b) >= 8 {
		d, s, t := (*[8]float32)(dst), (*[8]float32)(a), (*[8]float32)(b)
		d[0] = s[0] + t[0]
		d[1] = s[1] + t[1]
		d[2] = s[2] + t[2]
		d[3] = s[3] + t[3]
		d[4] = s[4] + t[4]
		d[5] = s[5] + t[5]
		d[6] = s[6] + t[6]
		d[7] = s[7] + t[7]
		dst, a, b = dst[8:], a[8:], b[8:]
	}
	for i := range dst {
		dst[i] = a[i] + b[i]
	}
}

// add3 stores (a+b)+c in dst, which may be one of them.
func add3(dst, a, b, c []float32) {
	n := len(dst)
	a, b, c = a[:n], b[:n], c[:n]
	for len(dst) >= 4 && len(a) >= 4 && len(b) >= 4 && len(c) >= 4 {
		d, s, t, u := (*[4]float32)(dst), (*[4]float32)(a), (*[4]float32)(b), (*[4]float32)(c)
		d[0] = s[0] + t[0] + u[0]
		d[1] = s[1] + t[1] + u[1]
		d[2] = s[2] + t[2] + u[2]
		d[3] = s[3] + t[3] + u[3]
		dst, a, b, c = dst[4:], a[4:], b[4:], c[4:]
	}
	for i := range dst {
		dst[i] = a[i] + b[i] + c[i]
	}
}

// add4 stores ((a+b)+c)+e in dst, which may be one of them.
func add4(dst, a, b, c, e []float32) {
	n := len(dst)
	a, b, c, e = a[:n], b[:n], c[:n], e[:n]
	for len(dst) >= 4 && len(a) >= 4 && len(b) >= 4 && len(c) >= 4 && len(e) >= 4 {
		d, s, t, u, v := (*[4]float32)(dst), (*[4]float32)(a), (*[4]float32)(b), (*[4]float32)(c), (*[4]float32)(e)
		d[0] = s[0] + t[0] + u[0] + v[0]
		d[1] = s[1] + t[1] + u[1] + v[1]
		d[2] = s[2] + t[2] + u[2] + v[2]
		d[3] = s[3] + t[3] + u[3] + v[3]
		dst, a, b, c, e = dst[4:], a[4:], b[4:], c[4:], e[4:]
	}
	for i := range dst {
		dst[i] = a[i] + b[i] + c[i] + e[i]
	}
}
