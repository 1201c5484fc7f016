/* What the plugin uses of Wireshark: build.rs makes bindings for the installed version from these headers. */
#include <ws_version.h>
#include <epan/packet.h>
#include <epan/expert.h>
#include <epan/prefs.h>
#include <epan/prefs-int.h>
#include <epan/proto_data.h>
#include <epan/tap.h>
#include <epan/stats_tree.h>
#include <epan/conversation_table.h>
#include <wiretap/wtap.h>
#include <wsutil/report_message.h>
