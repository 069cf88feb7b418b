//! Leaves out MMAs whose results nobody reads, such as that of a loop's last iteration where the sum is not stored.
//!
//! ptxas drops them in part: what is left has no register for a result, as a product that it has lost. What is proved is proved of
//! the program with them; their slots are given back as before.

use std::collections::HashSet;
use twill_codegen::ir::{Expression, ExpressionKind, Group, Node, Op, Operand, VariableId, WarpProgram};

/// Variables whose values are read later (backward liveness: Aho et al., "Compilers", 9.2.5).
type Live = HashSet<VariableId>;

/// The program without them.
pub(crate) fn removed(mut program: WarpProgram) -> WarpProgram {
    program.groups.iter_mut().for_each(of_group);
    program
}

fn of_group(group: &mut Group) {
    let mut at_end = Live::new();
    before(&mut group.end.clone(), &mut at_end, &Live::new(), false);
    // What a tile begins with is what the tile before it ended with.
    let mut around = at_end.clone();
    before(&mut group.body.clone(), &mut around, &at_end, false);
    around.extend(&at_end);
    before(&mut group.body, &mut around.clone(), &around, true);
}

/// Goes from what is live behind nodes to what is live before them. `returned`: what is live where the group's work on the tile ends.
/// `removes`: dead MMAs are taken out, but those of loops.
fn before(nodes: &mut Vec<Node>, live: &mut Live, returned: &Live, removes: bool) {
    for k in (0..nodes.len()).rev() {
        if removes && is_dead(&nodes[k], live) && without(nodes, k) {
            continue;
        }
        for expression in nodes[k].expressions() {
            add(expression, live);
        }
        match &mut nodes[k] {
            Node::Op(op, _) => before_op(op, live),
            Node::Return => live.clone_from(returned),
            node @ (Node::PipelinedLoop { .. } | Node::For { .. } | Node::While { .. }) => loop {
                let known = live.len();
                for block in node.blocks_mut() {
                    let mut within = live.clone();
                    before(block, &mut within, returned, false);
                    live.extend(within);
                }
                if live.len() == known {
                    break;
                }
            },
            node @ (Node::TripSwitch { .. } | Node::If { .. }) => {
                let behind = live.clone();
                for block in node.blocks_mut() {
                    let mut within = behind.clone();
                    before(block, &mut within, returned, removes);
                    live.extend(within);
                }
            }
        }
    }
}

fn is_dead(node: &Node, live: &Live) -> bool {
    matches!(node, Node::Op(Op::Wgmma { to, .. }, _) if !live.contains(to))
}

/// Takes an MMA out, if one of the waits behind it in its list of nodes is for it. Those before that one count it among the MMAs
/// that still run.
fn without(nodes: &mut Vec<Node>, k: usize) -> bool {
    let Node::Op(Op::Wgmma { to, left, right, .. }, _) = &nodes[k] else { return false };
    let (to, mut unused): (VariableId, Live) = (*to, operands(left, right).collect());
    let (mut started, mut waits, mut is_over) = (0, Vec::new(), false);
    for (at, node) in nodes.iter().enumerate().skip(k + 1) {
        match node {
            Node::Op(Op::Wgmma { .. }, _) => started += 1,
            Node::Op(Op::WgmmaWait { pending, .. }, _) => {
                is_over = started >= *pending;
                waits.push(at);
            }
            Node::Op(..) => {}
            _ => break,
        }
        if is_over {
            break;
        }
    }
    if !is_over {
        return false;
    }
    for (at, node) in nodes[..waits.last().map_or(k, |last| *last)].iter().enumerate() {
        if let Node::Op(Op::Wgmma { left, right, .. }, _) = node
            && at != k
        {
            operands(left, right).for_each(|operand| {
                unused.remove(&operand);
            });
        }
    }
    for at in waits.iter().rev() {
        let Node::Op(Op::WgmmaWait { pending, completed, in_flight }, _) = &mut nodes[*at] else { continue };
        *pending -= u32::from(Some(at) != waits.last());
        completed.retain(|one| *one != to && !unused.contains(one));
        in_flight.retain(|one| *one != to);
        if completed.is_empty() && in_flight.is_empty() {
            nodes.remove(*at);
        }
    }
    nodes.remove(k);
    true
}

fn before_op(op: &Op, live: &mut Live) {
    match op {
        Op::Let { to, .. } => {
            live.remove(to);
        }
        Op::Copy { to, from } => {
            live.remove(to);
            live.insert(*from);
        }
        Op::Wgmma { to, left, right, accumulator } => {
            live.remove(to);
            live.extend(operands(left, right).chain(*accumulator));
        }
        Op::WgmmaInit(variable) => {
            live.insert(*variable);
        }
        Op::Opaque { results, .. } => results.iter().for_each(|to| {
            live.remove(to);
        }),
        // What a wait names is there before it, and after it.
        _ => {}
    }
    op.expressions().into_iter().for_each(|expression| add(expression, live));
}

/// Variables that an MMA takes operands from.
fn operands<'a>(left: &'a Operand, right: &'a Operand) -> impl Iterator<Item = VariableId> + 'a {
    [left, right].into_iter().filter_map(|operand| match operand {
        Operand::Registers(variable) => Some(*variable),
        Operand::Shared(_) => None,
    })
}

/// What an expression reads.
fn add(expression: &Expression, live: &mut Live) {
    expression.walk(&mut |e| {
        if let ExpressionKind::Variable(id) = e.kind {
            live.insert(id);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUM: &str = "a_buffer <result 0 0, 0, current 0>, b_buffer <result 0 1, 0, current 0> accumulator";

    /// What is left of a group's body, where `%x` and `%y` are sums.
    fn left(body: &str) -> String {
        let body = body.replace("SUM", SUM);
        let text = format!(
            "
warp_program dead {{
  parameter out : !tt.ptr<f32>
  parameter n : i32
  tiles linear {{cta_coarsening = [1, 1, 1]}}
  smem a_buffer [64, 64] : f16 {{slots = 1, least = 1}}
  smem b_buffer [64, 64] : f16 {{slots = 1, least = 1}}
  group compute_0 {{id = 0, warps = 4, registers = 168}} {{
    variable %x [64, 64] : f32
    variable %y [64, 64] : f32
    variable %z [64, 64] : f32
    variable %i [] : i32
    begin {{
    }}
    body {{
      {body}
    }}
    end {{
    }}
  }}
}}"
        );
        let program: WarpProgram = text.parse().unwrap_or_else(|error| panic!("{error}\n{text}"));
        let group = removed(program).to_string();
        let (_, body) = group.split_once("body {").unwrap();
        let (body, _) = body.split_once("\n    end {").unwrap();
        let lines = body.lines().map(str::trim).filter(|line| !line.is_empty() && *line != "}");
        lines.map(|line| line.replace(SUM, "SUM")).collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn a_wait_names_no_operand_of_what_is_gone() {
        let zero = "let %x = broadcast(float(0.0) : [] f32) : [64, 64] f32";
        let of_registers = "wgmma %x = %z, b_buffer <result 0 1, 0, current 0> accumulator %x";
        let wait = "wgmma_wait 0 completed [%x, %z] in_flight []";
        assert_eq!(left(&format!("{zero}\n{of_registers}\n{wait}")), zero);
        // Another product has it too, and goes on.
        let other = of_registers.replace("%x", "%y");
        let wait = "wgmma_wait 0 completed [%y, %x, %z] in_flight []";
        assert_eq!(
            left(&format!("{other}\n{zero}\n{of_registers}\n{wait}")),
            format!("{other}; {zero}; wgmma_wait 0 completed [%y, %z] in_flight []")
        );
    }

    #[test]
    fn sums_that_nobody_reads_are_not_made() {
        let read = "let %z = %x : [64, 64] f32";
        let made = "wgmma %x = SUM %x\nwgmma_wait 0 completed [%x] in_flight []";
        assert_eq!(
            left(made),
            "wgmma %x = SUM %x; wgmma_wait 0 completed [%x] in_flight []",
            "the next tile adds to it"
        );
        let zero = "let %x = broadcast(float(0.0) : [] f32) : [64, 64] f32";
        let [zero, read] = [zero, read].map(str::to_owned);
        assert_eq!(left(&format!("{zero}\n{made}")), zero);
        assert!(left(&format!("{zero}\n{made}\n{read}")).contains("wgmma %x"));
        assert!(
            left(&format!("{zero}\n{made}\n{zero}\n{read}")).matches("wgmma").count() == 0,
            "made anew before it is read"
        );
    }

    #[test]
    fn waits_count_those_that_still_run() {
        let zero = "let %y = broadcast(float(0.0) : [] f32) : [64, 64] f32";
        let both = "wgmma %x = SUM %x\nwgmma %y = SUM %y\nwgmma_wait 1 completed [%x] in_flight [%y]";
        let text = format!("{zero}\n{both}\nwgmma_wait 0 completed [%y] in_flight []");
        assert_eq!(left(&text), format!("{zero}; wgmma %x = SUM %x; wgmma_wait 0 completed [%x] in_flight []"));
        let in_loop = format!(
            "{zero}\nfor %i = integer(0) : [] i32 to parameter n : [] i32 step integer(1) : [] i32 {{\n{text}\n}}"
        );
        assert!(left(&in_loop).contains("wgmma %y"), "loops are left as they are");
        assert!(left(&format!("{zero}\n{both}")).contains("wgmma %y"), "nobody waits for it here");
    }
}
