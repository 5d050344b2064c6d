package rdma

// add stores a[i]+b[i] in dst[i]. All three have the same length; dst may be a
// or b.
func add(dst, a, b []float32) {
	a, b = a[:len(dst)], b[:len(dst)]
	for len(dst) >= 8 {
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

// addInRankOrder leaves in mine the sum over all ranks, formed as
// ((v0 + v1) + v2) + …, where mine is the value of this rank and others holds
// those of the other ranks, by rank, each of the length of mine. It overwrites
// others.
func addInRankOrder(rank int, mine, others []float32) {
	n := len(mine)
	if n == 0 {
		return
	}
	before, after := others[:rank*n], others[rank*n:]
	if rank > 0 {
		acc := before[:n]
		for rest := before[n:]; len(rest) > 0; rest = rest[n:] {
			add(acc, acc, rest[:n])
		}
		add(mine, acc, mine)
	}
	for ; len(after) > 0; after = after[n:] {
		add(mine, mine, after[:n])
	}
}
