"""A kernel that is none of the examples, as a newcomer brings it: attention with a sigmoid instead of the softmax."""

import triton
import triton.language as tl

import twill_gpu

TILE = "tensordesc<fp16[128, 128]>"


@twill_gpu.example(q_desc=TILE, k_desc=TILE, v_desc=TILE, o_desc=TILE, length=4096, scale=0.088, bias=-8.3)
@triton.jit
def kernel(q_desc, k_desc, v_desc, o_desc, length, scale, bias):
    head = tl.program_id(1) * length
    row = head + tl.program_id(0) * 128
    q = q_desc.load([row, 0])
    acc = tl.zeros([128, 128], tl.float32)
    for key in range(0, length, 128):
        k = k_desc.load([head + key, 0])
        p = tl.sigmoid(tl.dot(q, k.T) * scale + bias)
        v = v_desc.load([head + key, 0])
        acc = tl.dot(p.to(tl.float16), v, acc)
    o_desc.store([row, 0], acc.to(tl.float16))
