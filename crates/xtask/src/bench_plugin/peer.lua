-- The peer of `cargo xtask bench plugin`: the same messages dissected in Lua, as one would without a compiled plugin.
-- Not for use: it verifies no ICRC, knows no rule of the drafts, and reads no cut or damaged packet with care.

local cnp = Proto("lcnp", "CNP (Lua)")
local fast = Proto("lfastcnp", "Fast CNP (Lua)")
local proxy = Proto("lproxycn", "Proxy CN (Lua)")
local wan = Proto("lwanfcn", "WAN FCN (Lua)")

local c_fecn = ProtoField.bool("lcnp.fecn", "FECN", 8, nil, 0x80)
local c_becn = ProtoField.bool("lcnp.becn", "BECN", 8, nil, 0x40)
local c_qp = ProtoField.uint24("lcnp.dest_qp", "Destination QP", base.HEX)
local c_psn = ProtoField.uint24("lcnp.psn", "PSN", base.DEC)
local c_rest = ProtoField.bytes("lcnp.reserved", "Reserved")
cnp.fields = { c_fecn, c_becn, c_qp, c_psn, c_rest }

local f_type = ProtoField.uint8("lfastcnp.option.type", "Type", base.HEX)
local f_len = ProtoField.uint8("lfastcnp.option.length", "Length", base.DEC)
local f_dest = ProtoField.ipv6("lfastcnp.option.original_destination", "Original destination")
local f_ns = ProtoField.uint16("lfastcnp.trace.namespace", "Namespace", base.DEC)
local f_nodelen = ProtoField.uint8("lfastcnp.trace.node_len", "Node length", base.DEC, nil, 0xF8)
local f_left = ProtoField.uint8("lfastcnp.trace.remaining_len", "Remaining length", base.DEC, nil, 0x7F)
local f_bits = ProtoField.uint24("lfastcnp.trace.type", "Trace type", base.HEX)
local f_word = ProtoField.uint32("lfastcnp.node.word", "Word", base.HEX)
local f_node = ProtoField.none("lfastcnp.node", "Node")
fast.fields = { f_type, f_len, f_dest, f_ns, f_nodelen, f_left, f_bits, f_node, f_word }

local p_source4 = ProtoField.ipv4("lproxycn.source_ipv4", "Source")
local p_dest4 = ProtoField.ipv4("lproxycn.destination_ipv4", "Destination")
local p_source6 = ProtoField.ipv6("lproxycn.source_ipv6", "Source")
local p_dest6 = ProtoField.ipv6("lproxycn.destination_ipv6", "Destination")
local p_proto = ProtoField.uint8("lproxycn.protocol", "Protocol", base.DEC)
local p_sport = ProtoField.uint16("lproxycn.source_port", "Source port", base.DEC)
local p_dport = ProtoField.uint16("lproxycn.destination_port", "Destination port", base.DEC)
local p_level = ProtoField.uint8("lproxycn.level", "Congestion level", base.DEC, nil, 0xE0)
proxy.fields = { p_source4, p_dest4, p_source6, p_dest6, p_proto, p_sport, p_dport, p_level }

local w_label = ProtoField.uint32("lwanfcn.flow_label", "Flow label", base.HEX, nil, 0xFFFFF000)
local w_level = ProtoField.uint32("lwanfcn.level", "Congestion level", base.DEC, nil, 0x00000E00)
wan.fields = { w_label, w_level }

local function trace(tvb, tree)
  tree:add(f_ns, tvb(0, 2))
  tree:add(f_nodelen, tvb(2, 1))
  tree:add(f_left, tvb(3, 1))
  tree:add(f_bits, tvb(4, 3))
  local words = bit.rshift(tvb(2, 1):uint(), 3)
  if words == 0 then return end
  local at = 8
  while at + 4 * words <= tvb:len() do
    local node = tree:add(f_node, tvb(at, 4 * words))
    for word = 0, words - 1 do
      node:add(f_word, tvb(at + 4 * word, 4))
    end
    at = at + 4 * words
  end
end

local ip_proto = DissectorTable.get("ip.proto")
local options_before = ip_proto:get_dissector(60)
local is_fast = false

local options = Proto("lopts", "Destination Options (Lua)")
function options.dissector(tvb, pinfo, tree)
  local at, last = 2, math.min((tvb(1, 1):uint() + 1) * 8, tvb:len())
  while at + 2 <= last do
    local kind = tvb(at, 1):uint()
    if kind == 0 then
      at = at + 1
    else
      local len = tvb(at + 1, 1):uint()
      if at + 2 + len > last then break end
      if (kind == 0x9E and len == 16) or (kind == 0x9F and len >= 26) then
        is_fast = true
        local sub = tree:add(fast, tvb(at, 2 + len))
        sub:add(f_type, tvb(at, 1))
        sub:add(f_len, tvb(at + 1, 1))
        sub:add(f_dest, tvb(at + 2 + len - 16, 16))
        if kind == 0x9F then trace(tvb(at + 4, len - 18):tvb(), sub) end
      end
      at = at + 2 + len
    end
  end
  return options_before:call(tvb, pinfo, tree)
end
ip_proto:set(60, options)

local udp_port = DissectorTable.get("udp.port")
local roce_before = udp_port:get_dissector(4791)
local roce = Proto("lroce", "RoCEv2 (Lua)")
function roce.dissector(tvb, pinfo, tree)
  local fast_now = is_fast
  is_fast = false
  local done = roce_before:call(tvb, pinfo, tree)
  if tvb:len() >= 28 and tvb(0, 1):uint() == 0x81 then
    local sub = tree:add(cnp, tvb(0, 28))
    sub:add(c_fecn, tvb(4, 1))
    sub:add(c_becn, tvb(4, 1))
    sub:add(c_qp, tvb(5, 3))
    sub:add(c_psn, tvb(9, 3))
    sub:add(c_rest, tvb(12, 16))
    local name = fast_now and "Fast CNP" or "CNP"
    pinfo.cols.protocol = name
    pinfo.cols.info = string.format("%s from %s to sender %s, QP %d", name, tostring(pinfo.src), tostring(pinfo.dst),
      tvb(5, 3):uint())
  end
  return done
end
udp_port:set(4791, roce)

local ip4, ip6 = Dissector.get("ip"), Dissector.get("ipv6")
function proxy.dissector(tvb, pinfo, tree)
  local is4 = tvb:len() > 16 and bit.rshift(tvb(16, 1):uint(), 4) == 4
  local at = is4 and 8 or 32
  if tvb:len() < at + 8 then return 0 end
  local sub = tree:add(proxy, tvb())
  sub:add(is4 and p_source4 or p_source6, tvb(0, at / 2))
  sub:add(is4 and p_dest4 or p_dest6, tvb(at / 2, at / 2))
  sub:add(p_proto, tvb(at, 1))
  sub:add(p_sport, tvb(at + 1, 2))
  sub:add(p_dport, tvb(at + 3, 2))
  sub:add(p_level, tvb(at + 5, 1))
  if tvb:len() > at + 8 then (is4 and ip4 or ip6):call(tvb(at + 8):tvb(), pinfo, sub) end
  pinfo.cols.protocol = "Proxy CN"
  pinfo.cols.info = string.format("Proxy CN, level %d", bit.rshift(tvb(at + 5, 1):uint(), 5))
  return tvb:len()
end
udp_port:set(1021, proxy)

function wan.dissector(tvb, pinfo, tree)
  if tvb:len() < 4 then return 0 end
  local sub = tree:add(wan, tvb())
  sub:add(w_label, tvb(0, 4))
  sub:add(w_level, tvb(0, 4))
  pinfo.cols.protocol = "WAN FCN"
  pinfo.cols.info = string.format("WAN FCN for flow label 0x%05x", bit.rshift(tvb(0, 4):uint(), 12))
  return tvb:len()
end
udp_port:set(1022, wan)
